"""What an evaluation will take, from what finished ones of this platform have taken.

A benchmark's speed depends on the model most: figures come from evaluations of the same model, else of models
of a similar size, and there are none where neither was measured here.
"""

from dataclasses import dataclass
from statistics import median

from sqlmodel import Session
from trellis_contracts.evaluation import (
    AnyOrder,
    BenchmarkResult,
    CustomOrder,
    HarnessOrder,
    HumanEvalOrder,
    JudgeScorer,
    MathOrder,
    MmluOrder,
)

from trellis_api.benchmarks import repository as installs
from trellis_api.benchmarks import service as benchmarks
from trellis_api.benchmarks.schemas import InstallState
from trellis_api.core.settings import Settings
from trellis_api.datasets.view import view
from trellis_api.evaluations import repository
from trellis_api.evaluations.checking import names_to_install
from trellis_api.evaluations.create import check_plan
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.schemas import (
    BenchmarkEstimate,
    EvaluationEstimate,
    EvaluationPlan,
    TargetEstimate,
)
from trellis_api.evaluations.service import read_request
from trellis_api.evaluations.targets import FoundTarget
from trellis_api.models.repository import find_model

#: Finished evaluations of a benchmark that are looked at, and results that figures are taken from.
_LOOKED_AT, _TAKEN = 100, 5
#: Times larger or smaller that a model may be and still be of a similar size.
_SIMILAR = 2.0


@dataclass(frozen=True)
class _Speed:
    """What one sample takes."""

    prompt_tokens: float
    output_tokens: float
    seconds: float
    measured_in: int


def estimate(session: Session, settings: Settings, *, plan: EvaluationPlan) -> EvaluationEstimate:
    """Estimate each target and benchmark; problems of the plan raise as if it were queued."""
    targets, orders = check_plan(session, settings, plan=plan)
    samples = {str(order.label): _count_samples(session, settings, order) for order in orders}
    rows = []
    for asked, target in zip(plan.targets, targets, strict=True):
        found = [_estimate_one(session, target, order, samples[str(order.label)]) for order in orders]
        rows.append(
            TargetEstimate(
                target=asked,
                name=target.name,
                benchmarks=found,
                seconds=_sum([each.seconds for each in found]),
            )
        )
    every = [each for row in rows for each in row.benchmarks]
    return EvaluationEstimate(
        targets=rows,
        samples=_sum_whole([each.samples for each in every]),
        output_tokens=_sum_whole([each.output_tokens for each in every]),
        seconds=_sum([row.seconds for row in rows]),
        judge_cost=sum(each.judge_cost or 0.0 for each in every),
        to_install=_list_absent(session, orders),
    )


def _estimate_one(
    session: Session, target: FoundTarget, order: AnyOrder, samples: int | None
) -> BenchmarkEstimate:
    speed = _find_speed(session, target, order) if samples is not None else None
    is_judged = isinstance(order, CustomOrder) and isinstance(order.scorer, JudgeScorer)
    return BenchmarkEstimate(
        label=str(order.label),
        samples=samples,
        prompt_tokens=round(samples * speed.prompt_tokens) if samples is not None and speed else None,
        output_tokens=round(samples * speed.output_tokens) if samples is not None and speed else None,
        seconds=round(samples * speed.seconds, 1) if samples is not None and speed else None,
        measured_in=speed.measured_in if speed else 0,
        judge_cost=order.scorer.max_cost if is_judged else None,  # type: ignore[union-attr]
    )


def _count_samples(session: Session, settings: Settings, order: AnyOrder) -> int | None:
    """Count the generations that a benchmark will make; None for a task whose rows are not known here."""
    if isinstance(order, HarnessOrder):
        return None
    if isinstance(order, CustomOrder):
        problems = view(
            session, settings, dataset_id=order.dataset, revision=order.version, split=order.split
        ).row_count
    else:
        problems = _count_problems(session, order)
    if order.limit is not None:
        problems = min(problems, order.limit)
    return problems * (order.samples if isinstance(order, HumanEvalOrder) else 1)


def _count_problems(session: Session, order: AnyOrder) -> int:
    entry = benchmarks.find_entry(order.benchmark)
    row = installs.find_install(session, name=order.benchmark)
    is_here = row is not None and row.state == InstallState.READY
    total = row.rows.get(entry.measured, 0) if row and is_here else entry.parts[entry.measured].rows
    if row is None or not is_here:
        return total
    if isinstance(order, MmluOrder) and order.subjects is not None:
        counts = row.groups.get("subject", {})
        return sum(counts.get(subject, 0) for subject in set(order.subjects))
    if isinstance(order, MathOrder):
        return _count_mathematics(order, row.groups, total)
    return total


def _count_mathematics(order: MathOrder, groups: dict[str, dict[str, int]], total: int) -> int:
    """Return an upper bound: the files count problems by level and by type, but not by both."""
    most = total
    if order.types is not None:
        most = min(most, sum(groups.get("type", {}).get(name, 0) for name in set(order.types)))
    if order.levels is not None:
        counts = groups.get("level", {})
        most = min(most, sum(counts.get(f"Level {level}", 0) for level in set(order.levels)))
    return most


def _find_speed(session: Session, target: FoundTarget, order: AnyOrder) -> _Speed | None:
    measured = repository.list_measured(session, benchmark=order.benchmark, limit=_LOOKED_AT)
    same = [row for row in measured if _is_same_model(row, target)]
    similar = same or [row for row in measured if _is_similar(session, row, target)]
    results = [result for row in similar for result in _results_like(row, order)][:_TAKEN]
    if not results:
        return None
    return _Speed(
        prompt_tokens=median(each.prompt_tokens / each.counts.total for each in results),
        output_tokens=median(each.output_tokens / each.counts.total for each in results),
        seconds=median(each.seconds / each.counts.total for each in results),
        measured_in=len(results),
    )


def _results_like(row: Evaluation, order: AnyOrder) -> list[BenchmarkResult]:
    """Return the evaluation's results on the same benchmark in the same setup (generation, shots, rows)."""
    asked = {each.label: each for each in read_request(row).benchmarks}
    found = [BenchmarkResult.model_validate(result) for result in row.results or []]
    return [
        result
        for result in found
        if result.counts.total and (like := asked.get(result.label)) and _work(like) == _work(order)
    ]


def _work(order: AnyOrder) -> tuple[object, ...]:
    """Return the settings of an order that determine the work per sample."""
    kind: object = None
    if isinstance(order, MmluOrder):
        kind = order.mode
    elif isinstance(order, CustomOrder):
        kind = (order.dataset, order.scorer.kind)
    elif isinstance(order, HarnessOrder):
        kind = order.task
    return order.benchmark, order.shots, order.chat, order.decoding.max_tokens, kind


def _is_same_model(row: Evaluation, target: FoundTarget) -> bool:
    if target.job_id is not None:
        return row.target_job_id == target.job_id
    return row.target_model_id == target.model_id


def _is_similar(session: Session, row: Evaluation, target: FoundTarget) -> bool:
    size = target.model.parameter_count if target.model else None
    job = repository.map_jobs(session, evaluations=[row]).get(row.job_id)
    other = find_model(session, model_id=job.model_id) if job else None
    if not size or other is None or not other.parameter_count:
        return False
    return 1 / _SIMILAR <= other.parameter_count / size <= _SIMILAR


def _list_absent(session: Session, orders: list[AnyOrder]) -> list[str]:
    here = installs.map_installs(session)
    return [
        name
        for name in names_to_install(orders)
        if name not in here or here[name].state != InstallState.READY
    ]


def _sum(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return round(sum(known), 1) if len(known) == len(parts) else None


def _sum_whole(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
