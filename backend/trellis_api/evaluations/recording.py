"""Takes in what a run has left: the scores go to the database, in the transaction that settles its job."""

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError
from sqlmodel import Session
from trellis_contracts.evaluation import (
    AnyOrder,
    BenchmarkResult,
    CustomOrder,
    EvaluationResult,
    Score,
)

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.core.texts import storable, storable_tree
from trellis_api.evaluations import repository
from trellis_api.evaluations.folder import result_path, samples_path
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.evaluations.orders import EvaluationRequest
from trellis_api.evaluations.service import read_request
from trellis_api.jobs.models import Job

log = logging.getLogger(__name__)
#: Larger than any result: a file that somebody else wrote is not read into memory.
_MAX_RESULT_BYTES = 64 * 1024**2


class UnusableResult(Exception):
    """What the run left is no result; the message says why."""


def read_result(settings: Settings, row: Evaluation) -> EvaluationResult:
    """Read the complete result of a run; ``UnusableResult`` if a benchmark or its samples are missing."""
    path = result_path(settings, row.id)
    try:
        if path.stat().st_size > _MAX_RESULT_BYTES:
            raise UnusableResult(f"{path.name} is larger than any result.")
        result = EvaluationResult.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UnusableResult(f"{path.name} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        raise UnusableResult(f"{path.name} is no result: {error.errors()[0]['msg']}.") from error
    if result.evaluation_id != row.id:
        raise UnusableResult(f"{path.name} belongs to {result.evaluation_id}.")
    asked = [str(order.label) for order in read_request(row).benchmarks]
    found = [each.label for each in result.benchmarks]
    if sorted(asked) != sorted(found):
        raise UnusableResult(f"{path.name} has scores of {', '.join(found) or 'nothing'}, not of {asked}.")
    for label in asked:
        if not samples_path(settings, row.id, label).is_file():
            raise UnusableResult(f"The samples of '{label}' are missing.")
    return result


def record_result(session: Session, *, job: Job, result: EvaluationResult) -> Evaluation | None:
    """Write the scores down; None where the evaluation was deleted meanwhile."""
    row = repository.find_by_job(session, job_id=job.id)
    if row is None:
        return None
    request = read_request(row)
    orders = {str(order.label): order for order in request.benchmarks}
    row.results = storable_tree([each.model_dump(mode="json") for each in result.benchmarks])
    row.manifest = storable_tree(result.manifest)
    row.recorded_at = utc_now()
    session.add(row)
    scores: list[EvaluationScore] = []
    for each in result.benchmarks:
        order = orders[each.label]
        way = _Way(
            describe_configuration(request, order, result),
            order.dataset if isinstance(order, CustomOrder) else None,
        )
        scores += _scores_of(row, each, way)
    repository.replace_scores(session, evaluation_id=row.id, scores=scores)
    log.info("evaluation %s: %d scores recorded", row.id, len(scores))
    return row


def describe_configuration(request: EvaluationRequest, order: AnyOrder, result: EvaluationResult) -> str:
    """Hash what makes scores comparable: the order, the data, and the seed if it decides anything."""
    is_drawn = order.limit is not None or order.decoding.temperature > 0
    told = {
        "order": order.model_dump(mode="json", exclude={"label", "version", "split"}),
        "rows": [order.version, order.split] if isinstance(order, CustomOrder) else None,
        "data": _data_of(result, str(order.label)),
        "seed": request.seed if is_drawn else None,
    }
    text = json.dumps(told, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _data_of(result: EvaluationResult, label: str) -> list[str | None]:
    """Return the data hash and revision that identify a benchmark's rows in the run's manifest."""
    benchmarks = result.manifest.get("benchmarks")
    part = benchmarks.get(label) if isinstance(benchmarks, dict) else None
    return [part.get(key) for key in ("data_sha256", "revision")] if isinstance(part, dict) else []


@dataclass(frozen=True)
class _Way:
    """How and on what a benchmark was measured."""

    configuration: str
    dataset_id: str | None


def _scores_of(row: Evaluation, result: BenchmarkResult, way: _Way) -> Iterator[EvaluationScore]:
    for score in result.scores:
        yield _as_row(row, result, score, way)
    for group in result.groups:
        yield _as_row(row, result, group.score, way, group=(group.kind, group.name))


def _as_row(
    row: Evaluation,
    result: BenchmarkResult,
    score: Score,
    way: _Way,
    *,
    group: tuple[str, str] | None = None,
) -> EvaluationScore:
    return EvaluationScore(
        evaluation_id=row.id,
        label=result.label,
        benchmark=result.benchmark,
        metric=storable(score.metric)[:200],
        is_headline=group is None and score.metric == result.headline,
        group_kind=storable(group[0])[:200] if group else None,
        group_name=storable(group[1])[:500] if group else None,
        value=score.value,
        stderr=score.stderr,
        low=score.low,
        high=score.high,
        method=score.method,
        n=score.n,
        configuration=way.configuration,
        dataset_id=way.dataset_id,
        target_model_id=row.target_model_id,
        target_job_id=row.target_job_id,
        target_step=row.target_step,
        created_at=row.recorded_at or utc_now(),
    )
