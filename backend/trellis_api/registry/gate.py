"""The condition of a promotion: not worse than what the alias stands on, problem by problem.

Looked at without a transaction: samples are read, which may take a while.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, or_, select
from trellis_evaluation.catalogue import list_benchmarks

from trellis_api.core.settings import Settings
from trellis_api.evaluations.comparing import compare_label
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.jobs.metrics.direction import suit_mode
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model
from trellis_api.registry import service
from trellis_api.registry.errors import GateClosed
from trellis_api.registry.schemas import Gate, GateResult


@dataclass(frozen=True)
class Look:
    """Two evaluations to compare: the one of what stands there, and that of what shall."""

    gate: Gate
    old: Evaluation
    new: Evaluation


def find_evaluations(
    session: Session, *, gate: Gate, name: str, current: int | None, wanted: int
) -> Look | None:
    """Find the two evaluations to compare; None if the alias has no version yet, or the same.

    Raises ``GateClosed``.
    """
    _require_known(session, gate.benchmark)
    if current is None or current == wanted:
        return None
    old, new = (
        _list_scores(session, name=name, number=number, label=gate.benchmark) for number in (current, wanted)
    )
    for number, found in ((current, old), (wanted, new)):
        if not found:
            raise GateClosed(
                f"Version {number} hasn't been evaluated on '{gate.benchmark}'. Evaluate it first.",
                {"version": number, "benchmark": gate.benchmark},
            )
    pairs = [(one, other) for one in old for other in new if one.configuration == other.configuration]
    if not pairs:
        raise GateClosed(
            f"Versions {current} and {wanted} were evaluated on '{gate.benchmark}' with "
            "different settings. Evaluate both the same way.",
            {"benchmark": gate.benchmark},
        )
    rows = [session.get(Evaluation, score.evaluation_id) for score in pairs[0]]
    if rows[0] is None or rows[1] is None:
        raise GateClosed("An evaluation was deleted just now; try again.", {"benchmark": gate.benchmark})
    return Look(gate, rows[0], rows[1])


def judge(settings: Settings, look: Look) -> GateResult:
    """Return the result unless it is worse. Raises ``GateClosed`` with the scores if it is."""
    found = compare_label(settings, look.old, look.new, look.gate.benchmark)
    result = GateResult(
        benchmark=look.gate.benchmark,
        metric=found.metric,
        value=found.b.value,
        against=found.a.value,
        difference=found.difference,
        p_value=found.p_value,
        pairs=found.pairs,
        evaluation=look.new.id,
        against_evaluation=look.old.id,
    )
    if found.obstacle is not None:
        raise GateClosed(
            f"The two cannot be compared on '{look.gate.benchmark}': {found.obstacle}.",
            result.model_dump(mode="json"),
        )
    is_lower = found.difference < 0 if suit_mode(found.metric) == "max" else found.difference > 0
    if is_lower and found.is_significant:
        raise GateClosed(
            f"It is worse on '{look.gate.benchmark}': {found.b.value:.4g} against {found.a.value:.4g} "
            f"({found.worsened} problems worse, {found.improved} better, p = {found.p_value:.2g}).",
            result.model_dump(mode="json"),
        )
    return result


def _require_known(session: Session, label: str) -> None:
    """Raise ``GateClosed`` for a label that nothing has, as a typo must not pass while the alias is unset."""
    measured = select(EvaluationScore.id).where(EvaluationScore.label == label).limit(1)
    if label in {benchmark.name for benchmark in list_benchmarks()} or session.exec(measured).first():
        return
    raise GateClosed(
        f"'{label}' is no benchmark, and nothing was evaluated under this label. Correct it, or evaluate "
        "first.",
        {"benchmark": label},
    )


def _list_scores(session: Session, *, name: str, number: int, label: str) -> list[EvaluationScore]:
    """List a version's headline scores, newest first: of its model and the checkpoint it was made from."""
    version = service.get_version(session, name=name, number=number)
    model = find_model(session, model_id=version.model_id)
    query = select(EvaluationScore).where(
        EvaluationScore.label == label,
        col(EvaluationScore.is_headline).is_(True),
        col(EvaluationScore.group_kind).is_(None),
        _is_of(model, version.model_id),
    )
    return list(session.exec(query.order_by(col(EvaluationScore.id).desc())))


def _is_of(model: Model | None, model_id: str) -> ColumnElement[bool]:
    of_model = col(EvaluationScore.target_model_id) == model_id
    if model is None or model.source_job_id is None:
        return of_model
    of_checkpoint = (col(EvaluationScore.target_job_id) == model.source_job_id) & (
        col(EvaluationScore.target_step) == model.source_step
    )
    return or_(of_model, of_checkpoint)
