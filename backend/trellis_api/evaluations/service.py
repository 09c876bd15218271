"""The life of an evaluation after it was asked for; its state is that of its job."""

from sqlmodel import Session
from trellis_contracts.states import ACTIVE, FINISHED, JobState

from trellis_api.benchmarks.service import install_if_absent
from trellis_api.core.settings import Settings
from trellis_api.evaluations import repository
from trellis_api.evaluations.checking import names_to_install
from trellis_api.evaluations.errors import (
    EvaluationActive,
    EvaluationNotCancellable,
    EvaluationNotFound,
    EvaluationNotRetryable,
    EvaluationUnfinished,
)
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.orders import EvaluationRequest
from trellis_api.jobs import repository as jobs
from trellis_api.jobs import service
from trellis_api.jobs.models import Job
from trellis_api.jobs.service import RESUMABLE


def get_evaluation(session: Session, *, evaluation_id: str) -> Evaluation:
    """Return the evaluation; ``EvaluationNotFound`` without one."""
    row = repository.find_evaluation(session, evaluation_id=evaluation_id)
    if row is None:
        raise EvaluationNotFound(evaluation_id)
    return row


def read_request(row: Evaluation) -> EvaluationRequest:
    """Return the request that an evaluation carries out."""
    return EvaluationRequest.model_validate(row.request)


def get_manifest(session: Session, *, evaluation_id: str) -> dict[str, object]:
    """Return what the scores were measured with; ``EvaluationUnfinished`` before there are any."""
    row = get_evaluation(session, evaluation_id=evaluation_id)
    if row.manifest is None:
        raise EvaluationUnfinished("The evaluation has no results yet, so there is no manifest.")
    return row.manifest


def cancel(session: Session, *, evaluation_id: str) -> Evaluation:
    """Stop it; one that makes room for a training is not queued again."""
    row, job = _lock(session, evaluation_id)
    if job.state == JobState.STOPPING and row.displaced_at is not None:
        row.displaced_at = None
        session.add(row)
        service.announce(session, job=job)
        return row
    if job.state in FINISHED or job.state == JobState.STOPPING:
        raise EvaluationNotCancellable(f"The evaluation is {job.state.value}; there is nothing to cancel.")
    service.request_stop(session, job_id=job.id)
    return row


def retry(session: Session, settings: Settings, *, evaluation_id: str) -> Evaluation:
    """Queue it again where it was cancelled or has failed; what it has measured already stays."""
    row, job = _lock(session, evaluation_id)
    if job.state not in RESUMABLE:
        raise EvaluationNotRetryable(f"The evaluation is {job.state.value}; there is nothing to retry.")
    for name in names_to_install(read_request(row).benchmarks):
        install_if_absent(session, name=name)
    service.resume(session, job_id=job.id, data_root=settings.data_root)
    return row


def delete(session: Session, *, evaluation_id: str) -> None:
    """Forget an evaluation that is over, with its job; workers remove the files of both."""
    row, job = _lock(session, evaluation_id)
    if job.state in ACTIVE:
        raise EvaluationActive(f"The evaluation is {job.state.value}; cancel it first.")
    session.expunge(row)
    session.expunge(job)
    jobs.delete_job(session, job_id=job.id)
    repository.add_leftover(session, leftover_id=evaluation_id)


def displace(session: Session, *, job: Job) -> None:
    """Tell an evaluation to leave its slots to a training; the caller holds the job's lock."""
    row = repository.find_by_job(session, job_id=job.id)
    if row is None:
        raise EvaluationNotFound(str(job.evaluation_id))
    service.request_stop(session, job_id=job.id)
    row.displaced_at = job.stop_requested_at
    session.add(row)
    session.flush()


def go_on_if_displaced(session: Session, settings: Settings, *, job: Job) -> bool:
    """Queue an evaluation again that has made room and left; whether it was such a one."""
    row = repository.find_by_job(session, job_id=job.id)
    if row is None or row.displaced_at is None:
        return False
    row.displaced_at = None
    session.add(row)
    if job.state != JobState.STOPPED:
        return False  # it ended by itself before it heard of it
    service.resume(session, job_id=job.id, data_root=settings.data_root)
    return True


def _lock(session: Session, evaluation_id: str) -> tuple[Evaluation, Job]:
    """Lock the evaluation's job and return both, as they stand now."""
    job_id = get_evaluation(session, evaluation_id=evaluation_id).job_id
    job = jobs.lock_job(session, job_id=job_id)
    if job is None:
        raise EvaluationNotFound(evaluation_id)
    row = get_evaluation(session, evaluation_id=evaluation_id)
    session.refresh(row)
    return row, job
