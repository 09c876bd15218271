"""What happened to a fine-tuning job, newest first: the events of its job's stream, in sentences."""

from datetime import datetime
from typing import Any, Literal

from sqlmodel import Session

from trellis_api.core.errors import InvalidRequest
from trellis_api.fine_tuning import figures, repository
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.schemas import EventList, EventObject
from trellis_api.fine_tuning.states import find_error, find_export, find_status
from trellis_api.jobs.models import Job, JobEvent
from trellis_api.jobs.reporting.service import find_report
from trellis_api.jobs.repository import find_job

Level = Literal["info", "warn", "error"]
#: Numbers of what happens before there is a job, and of what happens when it is over.
_CREATED, _READING, _FIRST, _LAST = 1, 2, 3, 2**53
#: Between what happens before there is a job and the first event of its stream.
_REPORTING = _FIRST
_STATES: dict[str, tuple[Level, str]] = {
    "queued": ("info", "The files are valid; the job waits for room."),
    "running": ("info", "Fine-tuning job started."),
    "stopping": ("info", "The job writes a checkpoint and stops."),
    "stopped": ("warn", "The job has stopped."),
    "succeeded": ("info", "Training has finished; the model is being written."),
    "failed": ("error", "The job failed"),
    "crashed": ("error", "The job was lost"),
}


def list_page(session: Session, row: FineTuningJob, *, after: str | None, limit: int) -> EventList:
    """List one page, after an event of the page before."""
    before = _LAST + 1 if after is None else _read_number(row, after)
    job = find_job(session, job_id=row.job_id) if row.job_id else None
    found = [
        *_list_end(session, row, job),
        *_list_of_stream(session, row, job, before=before, limit=limit + 1),
        *_list_beginning(session, row),
    ]
    wanted = [(number, each) for number, each in found if number < before]
    return EventList(data=[each for _, each in wanted[:limit]], has_more=len(wanted) > limit)


def _list_end(session: Session, row: FineTuningJob, job: Job | None) -> list[tuple[int, EventObject]]:
    """Build the closing event of a finished job whose event stream has none."""
    export = find_export(session, job) if job else None
    status = find_status(row, job, export)
    error = find_error(row, job, export)
    if status == "succeeded" and export is not None and export.finished_at is not None:
        name = (export.export or {}).get("name", row.tuned_name)
        message = f"New fine-tuned model created: {name}. The job has successfully completed."
        return [_tell(row, _LAST, export.finished_at, "info", message)]
    if status == "cancelled" and row.cancelled_at is not None:
        return [_tell(row, _LAST, row.cancelled_at, "info", "The job was cancelled.")]
    is_told = job is not None and error is not None and error.code == (job.cause or "run_failed")
    if error is None or is_told:
        return []
    ended = row.finished_at or (export or job or row).finished_at or row.created_at
    return [_tell(row, _LAST, ended, "error", error.message)]


def _list_of_stream(
    session: Session, row: FineTuningJob, job: Job | None, *, before: int, limit: int
) -> list[tuple[int, EventObject]]:
    if job is None:
        return []
    position = None if before >= _LAST else before - _FIRST
    found: list[tuple[int, EventObject]] = []
    while len(found) < limit:
        told = repository.list_told(session, job_id=job.id, before=position, limit=limit)
        found += [
            (_FIRST + each.sequence, _translate(row, job, each)) for each in told if _says_something(each)
        ]
        if len(told) < limit:
            break
        position = told[-1].sequence
    return found[:limit]


def _says_something(event: JobEvent) -> bool:
    """Tell whether an event has a figure that clients know, where it has figures: not of times alone."""
    return event.kind != "metrics" or bool(figures.rename(event.payload.get("values") or {}))


def _list_beginning(session: Session, row: FineTuningJob) -> list[tuple[int, EventObject]]:
    reading = f"Validating training file: {row.request['training_file']}"
    if row.request.get("validation_file"):
        reading += f" and validation file: {row.request['validation_file']}"
    report = find_report(session, job_id=row.job_id) if row.job_id else None
    problem = report.problem if report else None
    failed = f"Metrics can't be sent to Weights & Biases: {problem}"
    return [
        *([_tell(row, _REPORTING, row.created_at, "warn", failed)] if problem else []),
        _tell(row, _READING, row.created_at, "info", reading),
        _tell(row, _CREATED, row.created_at, "info", f"Created fine-tuning job: {row.id}"),
    ]


def _translate(row: FineTuningJob, job: Job, event: JobEvent) -> EventObject:
    number, payload = _FIRST + event.sequence, event.payload
    if event.kind == "metrics":
        values = figures.rename(payload.get("values") or {})
        step = int(payload["step"])
        of_all = f"/{job.total_steps}" if job.total_steps else ""
        message = f"Step {step}{of_all}: {figures.describe(values)}"
        data = {"step": step, "total_steps": job.total_steps, **values}
        return _tell(row, number, event.created_at, "info", message, data)[1]
    if event.kind == "checkpoint":
        name = f"{job.id}:{payload['step']}"
        message = f"Checkpoint created at step {payload['step']}: {name}"
        return _tell(row, number, event.created_at, "info", message)[1]
    level, message = _STATES.get(str(payload.get("state")), ("info", f"The job is {payload.get('state')}."))
    if level == "error":
        message = f"{message}: {payload.get('reason') or 'no reason given'}"
    return _tell(row, number, event.created_at, level, message)[1]


def _tell(
    row: FineTuningJob,
    number: int,
    moment: datetime,
    level: Level,
    message: str,
    data: dict[str, Any] | None = None,
) -> tuple[int, EventObject]:
    return number, EventObject(
        id=f"{_prefix(row)}{number}",
        created_at=int(moment.timestamp()),
        level=level,
        message=message,
        type="metrics" if data is not None else "message",
        data=data,
    )


def _prefix(row: FineTuningJob) -> str:
    return f"ftevent-{row.id.removeprefix('ftjob-')}-"


def _read_number(row: FineTuningJob, after: str) -> int:
    number = after.removeprefix(_prefix(row))
    if number == after or not number.isascii() or not number.isdigit() or len(number) > 17:
        raise InvalidRequest(f"There is no event '{after[:64]}' of this job.", {"param": "after"})
    return int(number)
