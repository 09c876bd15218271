"""Where a fine-tuning job is, by the words of OpenAI's API: its own row and the platform's jobs decide."""

from sqlmodel import Session
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.schemas import JobError, Status
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import find_job

_UNEXPLAINED = "The run ended without a reason."


def find_export(session: Session, job: Job) -> Job | None:
    """Return the job that exports the model of a training."""
    export_id = (job.export_as or {}).get("job_id")
    return find_job(session, job_id=str(export_id)) if export_id else None


def find_status(row: FineTuningJob, job: Job | None, export: Job | None) -> Status:
    """Find the job's status. A job is running until its model is there."""
    if row.error is not None:
        return "failed"
    if job is not None and job.state == JobState.SUCCEEDED:
        return _status_of_export(row, job, export)
    if row.cancelled_at is not None:
        return "cancelled"
    if job is None:
        return "paused" if row.paused_at else "validating_files"
    if job.state in {JobState.QUEUED, JobState.LAUNCHING}:
        return "queued"
    if job.state == JobState.RUNNING:
        return "running"
    # One that was stopped on a page can go on, too.
    return "paused" if job.state in {JobState.STOPPING, JobState.STOPPED} else "failed"


def find_error(row: FineTuningJob, job: Job | None, export: Job | None) -> JobError | None:
    """Find why the job failed, if it did."""
    if row.error is not None:
        return JobError(**row.error)
    if find_status(row, job, export) != "failed" or job is None:
        return None
    if job.state != JobState.SUCCEEDED:
        return JobError(code=job.cause or "run_failed", message=job.reason or _UNEXPLAINED)
    if export is None:
        problem = (job.export_as or {}).get("problem")
        return JobError(code="export_failed", message=str(problem or "The model could not be written."))
    return JobError(code=export.cause or "export_failed", message=export.reason or _UNEXPLAINED)


def _status_of_export(row: FineTuningJob, job: Job, export: Job | None) -> Status:
    if export is None:
        plan = job.export_as or {}
        # A job that is over can be deleted; its model stays.
        is_over = bool(plan.get("job_id"))
        return "failed" if plan.get("problem") else "succeeded" if is_over else "running"
    if export.state == JobState.SUCCEEDED:
        return "succeeded"
    if row.cancelled_at is not None:
        return "cancelled"
    return "running" if export.state in ACTIVE else "failed"
