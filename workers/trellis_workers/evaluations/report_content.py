"""What a report tells: gathered from the database and from the evaluations' samples."""

from collections.abc import Iterator, Sequence

from sqlmodel import Session
from trellis_api.core.settings import Settings
from trellis_api.evaluations import comparing, history, repository
from trellis_api.evaluations.folder import samples_path
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.schemas import HistoryPoint as PlatformPoint
from trellis_api.jobs import repository as jobs
from trellis_api.reports.models import Report
from trellis_api.reports.schemas import ReportCreate
from trellis_contracts.evaluation import BenchmarkResult, Sample, Verdict
from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.reports.document import HistoryPoint, ReportComparison, ReportEvaluation, ReportInput
from trellis_evaluation.samples.store import Filters, open_store

#: What readers learn most from comes first.
_ORDER = (Verdict.WRONG, Verdict.CORRECT, Verdict.UNANSWERED, Verdict.TRUNCATED, Verdict.FAILED)


class CannotWrite(Exception):
    """The report cannot be written as it was asked for; the message is for its owner."""


def gather(session: Session, settings: Settings, *, report: Report) -> ReportInput:
    """Gather the content; ``CannotWrite`` if an evaluation was deleted since."""
    request = ReportCreate.model_validate(report.request)
    rows = [_find(session, each) for each in request.evaluations]
    labels = {result["label"] for row in rows for result in row.results or []}
    return ReportInput(
        title=report.name,
        created_at=report.created_at,
        evaluations=[_describe(session, settings, row, count=request.samples) for row in rows],
        comparisons=list(_compare(settings, rows)),
        history=list(_tell_history(session, rows, labels)),
    )


def _find(session: Session, evaluation_id: str) -> Evaluation:
    row = repository.find_evaluation(session, evaluation_id=evaluation_id)
    if row is None or row.results is None:
        raise CannotWrite(f"The evaluation {evaluation_id} was deleted; create a report without it.")
    return row


def _describe(session: Session, settings: Settings, row: Evaluation, *, count: int) -> ReportEvaluation:
    results = [BenchmarkResult.model_validate(result) for result in row.results or []]
    job = jobs.find_job(session, job_id=row.job_id)
    return ReportEvaluation(
        id=row.id,
        name=row.name,
        target=row.target_name,
        finished_at=job.finished_at if job is not None else row.recorded_at,
        results=results,
        manifest=row.manifest or {},
        examples={each.label: _choose_examples(settings, row, each.label, count) for each in results},
    )


def _choose_examples(settings: Settings, row: Evaluation, label: str, count: int) -> list[Sample]:
    """Choose some examples of each verdict in turn, wrong ones first, in the order they were drawn in."""
    if count == 0:
        return []
    try:
        with open_store(samples_path(settings, row.id, label)) as store:
            found = [store.page(Filters((verdict,)), limit=count).samples for verdict in _ORDER]
    except EvaluationProblem as problem:
        raise CannotWrite(f"Could not read the samples of {row.name}, {label}: {problem}") from problem
    turns = [samples[turn] for turn in range(count) for samples in found if turn < len(samples)]
    return sorted(turns[:count], key=lambda sample: (sample.position, sample.number))


def _compare(settings: Settings, rows: Sequence[Evaluation]) -> Iterator[ReportComparison]:
    """Compare each evaluation with the first, benchmark by benchmark."""
    first, *others = rows
    own = [result["label"] for result in first.results or []]
    for other in others:
        labels = {result["label"] for result in other.results or []}
        for label in own:
            if label in labels:
                found = comparing.compare_label(settings, first, other, label)
                yield ReportComparison(a=first.id, b=other.id, comparison=found)


def _tell_history(session: Session, rows: Sequence[Evaluation], labels: set[str]) -> Iterator[HistoryPoint]:
    """Yield the headline scores by step of each job, and by version of each model, of the report."""
    sources = dict.fromkeys((row.target_model_id, row.target_job_id) for row in rows)
    for model_id, job_id in sources:
        found = history.read_history(session, model_id=model_id, job_id=job_id, label=None, metric=None)
        points = [point for point in found.items if point.label in labels]
        if len(points) > 1:
            yield from (_as_point(point, is_of_job=job_id is not None) for point in points)


def _as_point(point: PlatformPoint, *, is_of_job: bool) -> HistoryPoint:
    target = point.target
    series = target.job.name if is_of_job and target.job is not None else None
    return HistoryPoint(
        label=point.label,
        metric=point.score.metric,
        series=series or target.name,
        step=target.step if is_of_job else None,
        name=target.name,
        score=point.score,
    )
