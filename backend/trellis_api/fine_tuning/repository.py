"""Queries on files and fine-tuning jobs."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, String, cast, func, update
from sqlmodel import Session, col, select, tuple_

from trellis_api.core.ids import ID_LENGTH
from trellis_api.datasets.models import Dataset
from trellis_api.fine_tuning.models import FineTuningJob, OpenAiFile
from trellis_api.jobs.models import Job, JobEvent

Row = TypeVar("Row", OpenAiFile, FineTuningJob)
#: Kinds of a job's events that say something to those who wait for it.
_TOLD = ("state", "metrics", "checkpoint")
#: Ids in one query.
_AT_ONCE = 1000
_LONGEST_ID = len("ftjob-") + ID_LENGTH


def find_file(session: Session, *, file_id: str) -> OpenAiFile | None:
    """Return the file with this ID."""
    return session.get(OpenAiFile, file_id) if len(file_id) <= _LONGEST_ID else None


def find_job(session: Session, *, job_id: str) -> FineTuningJob | None:
    """Return the fine-tuning job with this ID."""
    if len(job_id) > _LONGEST_ID:
        return None
    return session.get(FineTuningJob, job_id, populate_existing=True)


def lock_job(session: Session, *, job_id: str) -> FineTuningJob | None:
    """Lock the fine-tuning job until the transaction ends and return its current state."""
    if len(job_id) > _LONGEST_ID:
        return None
    return session.get(FineTuningJob, job_id, with_for_update=True, populate_existing=True)


def list_rows(
    session: Session,
    table: type[Row],
    *,
    after: Row | None,
    limit: int,
    is_ascending: bool = False,
    conditions: Sequence[ColumnElement[bool]] = (),
) -> list[Row]:
    """List rows newest first (or oldest), after a row."""
    position = tuple_(col(table.created_at), col(table.id))
    query = select(table).where(*conditions)
    if after is not None:
        place: tuple[datetime, str] = (after.created_at, after.id)
        query = query.where(position > place if is_ascending else position < place)
    columns = (col(table.created_at), col(table.id))
    order = [each.asc() if is_ascending else each.desc() for each in columns]
    return list(session.exec(query.order_by(*order).limit(limit)))


def has_metadata(wanted: Mapping[str, str] | None) -> list[ColumnElement[bool]]:
    """Build conditions that each metadata key has its value; None selects jobs without metadata."""
    given: Any = col(FineTuningJob.request)
    if wanted is None:
        return [given["metadata"].as_string().is_(None)]
    # One operator a key: PostgreSQL would parse a path, and some keys mean something else there.
    return [given["metadata"][key].as_string() == value for key, value in wanted.items()]


def map_datasets(session: Session, rows: Sequence[OpenAiFile]) -> dict[str, Dataset]:
    """Return the datasets of files that still exist, by dataset ID."""
    ids = {row.dataset_id for row in rows}
    found: dict[str, Dataset] = {}
    for some in batched(sorted(ids)):
        query = select(Dataset).where(col(Dataset.id).in_(some))
        found |= {dataset.id: dataset for dataset in session.exec(query)}
    return found


def list_waiting(session: Session, *, with_paused: bool = True) -> Sequence[str]:
    """List the ids of jobs that wait for their files to be read."""
    query = select(FineTuningJob.id).where(
        col(FineTuningJob.job_id).is_(None), col(FineTuningJob.finished_at).is_(None)
    )
    if not with_paused:
        query = query.where(col(FineTuningJob.paused_at).is_(None))
    return session.exec(query.order_by(col(FineTuningJob.created_at))).all()


def list_uses(session: Session, *, file_id: str) -> list[str]:
    """List the ids of jobs that wait for this file to be read."""
    waiting = (session.get(FineTuningJob, each) for each in list_waiting(session))
    return [
        row.id
        for row in waiting
        if row and file_id in (row.request["training_file"], row.request.get("validation_file"))
    ]


def map_platform_jobs(session: Session, rows: Sequence[FineTuningJob]) -> dict[str, Job]:
    """Return the platform jobs that carry out fine-tuning jobs, by ID."""
    ids = [row.job_id for row in rows if row.job_id]
    return {job.id: job for job in session.exec(select(Job).where(col(Job.id).in_(ids)))}


def list_told(session: Session, *, job_id: str, before: int | None, limit: int) -> Sequence[JobEvent]:
    """List the events of a job's stream that clients are shown, newest first.

    A job's stream says its state again when something else about it has changed: that tells them nothing.
    """
    said = cast(JobEvent.payload, String)
    before_it = func.lag(said).over(order_by=col(JobEvent.sequence))
    states = (
        select(col(JobEvent.sequence), said.label("said"), before_it.label("before"))
        .where(JobEvent.job_id == job_id, JobEvent.kind == "state")
        .subquery()
    )
    repeated = select(states.c.sequence).where(states.c.said == states.c.before)
    query = select(JobEvent).where(
        JobEvent.job_id == job_id,
        col(JobEvent.kind).in_(_TOLD),
        col(JobEvent.sequence).not_in(repeated),
    )
    if before is not None:
        query = query.where(JobEvent.sequence < before)
    return session.exec(query.order_by(col(JobEvent.sequence).desc()).limit(limit)).all()


def add(session: Session, row: OpenAiFile | FineTuningJob) -> None:
    """Write a row."""
    session.add(row)
    session.flush()


def forget_file(session: Session, row: OpenAiFile) -> None:
    """Delete a row."""
    session.delete(row)
    session.flush()


def note_hyperparameters(session: Session, *, job_id: str, chosen: dict[str, object]) -> None:
    """Keep what was chosen."""
    session.exec(update(FineTuningJob).where(col(FineTuningJob.id) == job_id).values(hyperparameters=chosen))


def batched(ids: Sequence[str]) -> Iterator[list[str]]:
    """Yield the IDs in lists as long as a query may name."""
    rest = iter(ids)
    while some := list(islice(rest, _AT_ONCE)):
        yield some
