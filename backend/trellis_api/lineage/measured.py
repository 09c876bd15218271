"""What was measured of models, checkpoints and on datasets, and the reports on it: for their lineages."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import String, cast, false
from sqlmodel import Session, col, or_, select
from trellis_contracts.states import JobState

from trellis_api.evaluations.models import Evaluation
from trellis_api.jobs.models import Job
from trellis_api.reports.models import Report

#: Of each, the newest: nobody reads more, and it has to end.
MOST_EVALUATIONS, MOST_REPORTS = 100, 100


@dataclass(frozen=True)
class Measured:
    """An evaluation, and what it measured."""

    id: str
    name: str
    state: str
    model_id: str | None
    job_id: str | None
    step: int | None
    #: Datasets that it read, each with its version.
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Written:
    """A report, and those of its evaluations that were asked about."""

    id: str
    name: str
    state: str
    evaluations: tuple[str, ...]


def find_measured(
    session: Session,
    *,
    model_ids: Collection[str] = (),
    job_ids: Collection[str] = (),
    dataset_id: str | None = None,
) -> Sequence[Measured]:
    """Return evaluations of the models and of the jobs' checkpoints, and on the dataset, newest first.

    One more than ``MOST_EVALUATIONS`` where there are more.
    """
    # As JSON text ids stand in quotes; an id has none itself.
    reads = cast(col(Evaluation.request), String).contains(f'"{dataset_id}"') if dataset_id else false()
    is_of = or_(
        col(Evaluation.target_model_id).in_(model_ids), col(Evaluation.target_job_id).in_(job_ids), reads
    )
    statement = select(Evaluation, Job.state).join(Job, col(Job.id) == col(Evaluation.job_id)).where(is_of)
    newest_first = (col(Evaluation.created_at).desc(), col(Evaluation.id).desc())
    found = session.exec(statement.order_by(*newest_first).limit(MOST_EVALUATIONS + 1))
    return [
        Measured(
            id=row.id,
            name=row.name,
            state=JobState(state).value,
            model_id=row.target_model_id,
            job_id=row.target_job_id,
            step=row.target_step,
            rows=tuple(_list_rows(row.request)),
        )
        for row, state in found
    ]


def find_reports(session: Session, *, evaluation_ids: Collection[str]) -> Sequence[Written]:
    """Return the newest reports on the evaluations; one more than ``MOST_REPORTS`` if there are more."""
    if not evaluation_ids:
        return []
    text = cast(col(Report.request), String)
    is_on = or_(*(text.contains(f'"{each}"') for each in evaluation_ids))
    newest_first = (col(Report.created_at).desc(), col(Report.id).desc())
    found = session.exec(select(Report).where(is_on).order_by(*newest_first).limit(MOST_REPORTS + 1))
    return [
        Written(
            id=row.id,
            name=row.name,
            state=row.state,
            evaluations=tuple(each for each in row.request["evaluations"] if each in evaluation_ids),
        )
        for row in found
    ]


def _list_rows(request: dict[str, Any]) -> list[tuple[str, str]]:
    orders = request.get("benchmarks", [])
    named = ((order.get("dataset"), order.get("version")) for order in orders)
    return [(dataset, version) for dataset, version in dict.fromkeys(named) if dataset and version]
