"""The life of a job: every change of state goes through the one table of allowed moves.

All functions take part in the caller's transaction: they flush, they never commit.
A job is locked before it is looked at, so of two callers one acts on what the other left.
How it is launched: ``submit.py`` writes QUEUED, ``admission.py`` says whose turn it is,
``trellis_workers/jobs/launch.py`` starts it, ``trellis_train/entrypoint.py`` runs it and reports
through ``ingest``.
"""

from dataclasses import dataclass
from pathlib import Path

from sqlmodel import Session
from trellis_contracts.attempt import locate_checkpoints
from trellis_contracts.states import ACTIVE, FINISHED, HOLDS_SLOTS, JobState

from trellis_api.auth.secrets import JOB_TOKEN_PREFIX, hash_secret, new_secret
from trellis_api.core.columns import utc_now
from trellis_api.core.provided import Provided
from trellis_api.jobs import repository
from trellis_api.jobs.alarms import service as alarms
from trellis_api.jobs.checkpoints import metrics as checkpoint_metrics
from trellis_api.jobs.errors import (
    CheckpointInUse,
    CheckpointNotFound,
    CheckpointPruned,
    JobNotFound,
    JobNotResumable,
    JobNotStoppable,
    JobOfEvaluation,
    JobStillActive,
    MoveNotAllowed,
)
from trellis_api.jobs.evaluating import repository as evaluating
from trellis_api.jobs.events import service as events
from trellis_api.jobs.events.schemas import StateChanged, StreamReset
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.models import EVALUATE, SERVE, Attempt, Checkpoint, Job
from trellis_api.jobs.reporting import service as reporting
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.timing import store as timing_store

#: From a state, the states that may follow. An exit can be seen before the first report
#: arrives, so a launching job can end in any way.
ALLOWED_MOVES: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.LAUNCHING, JobState.STOPPED, JobState.FAILED}),
    JobState.LAUNCHING: frozenset({JobState.RUNNING, JobState.STOPPING, *FINISHED}),
    JobState.RUNNING: frozenset({JobState.STOPPING, *FINISHED}),
    JobState.STOPPING: FINISHED,
    JobState.STOPPED: frozenset({JobState.QUEUED}),
    JobState.FAILED: frozenset({JobState.QUEUED}),
    JobState.CRASHED: frozenset({JobState.QUEUED}),
    JobState.SUCCEEDED: frozenset(),
}
RESUMABLE = frozenset({JobState.STOPPED, JobState.FAILED, JobState.CRASHED})
STOPPABLE = ACTIVE - {JobState.STOPPING}
#: Of a job that is over: gives up checkpoints of others that were kept because it read them.
RELEASE_CHECKPOINTS: Provided[[Session, Job], None] = Provided("checkpoints that a job no longer reads")
#: Of a serving job that is about to end: finds another engine for endpoints that wait to take its own over.
LEAVE_ENGINE: Provided[[Session, Job], None] = Provided("endpoints that wait for an engine")


@dataclass(frozen=True)
class Claim:
    """A job that the caller, and nobody else, shall launch."""

    job: Job
    #: Submit to Ray under ``submission_id``: Ray refuses it a second time.
    submission_id: str
    #: The ingest token in clear; it goes into the attempt's folder (mode 600) and nowhere else.
    token: str


def get_job(session: Session, *, job_id: str) -> Job:
    """Return the job; ``JobNotFound`` without one."""
    job = repository.find_job(session, job_id=job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job


def get_locked_job(session: Session, *, job_id: str) -> Job:
    """Return the job, locked for this transaction; ``JobNotFound`` without one."""
    job = repository.lock_job(session, job_id=job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job


def move(session: Session, *, job: Job, to: JobState) -> None:
    """Change the state and tell the pages; ``MoveNotAllowed`` where the table has no such move.

    A job that is over releases the checkpoints of others that it served or called. An engine that ends, or is
    to end, is left by whoever waits to take it over.
    """
    if to not in ALLOWED_MOVES[job.state]:
        raise MoveNotAllowed(job.state, to)
    if job.kind == SERVE and (to == JobState.STOPPING or to in FINISHED):
        LEAVE_ENGINE(session, job)
    job.state = to
    if to in FINISHED:
        job.finished_at = utc_now()
    announce(session, job=job)
    session.flush()
    if to in FINISHED:
        RELEASE_CHECKPOINTS(session, job)


def announce(session: Session, *, job: Job) -> None:
    """Tell the pages to read the job's state and actions again."""
    change = StateChanged(state=job.state, attempt=job.attempt, reason=job.reason)
    events.publish(session, job=job, kind="state", data=change)


def submission_id(job: Job) -> str:
    """Return the submission ID under which Ray knows the current attempt."""
    return f"{job.id}-{job.attempt}"


def claim_for_launch(session: Session, *, job_id: str) -> Claim | None:
    """Set QUEUED to LAUNCHING with a fresh token; None if somebody else has the job or it was stopped."""
    job = repository.lock_job(session, job_id=job_id)
    if job is None or job.state != JobState.QUEUED:
        return None
    job.launched_at = utc_now()
    move(session, job=job, to=JobState.LAUNCHING)
    return _issue_token(session, job=job)


def reclaim_launch(session: Session, *, job_id: str, attempt: int) -> Claim | None:
    """Issue a fresh token for a launch whose worker died before Ray had it.

    Only for an attempt that Ray does not know: the token of a process that runs becomes void.
    """
    job = repository.lock_job(session, job_id=job_id)
    if job is None or job.state != JobState.LAUNCHING or job.attempt != attempt:
        return None
    job.launched_at = utc_now()
    return _issue_token(session, job=job)


def mark_running(session: Session, *, job: Job, attempt: Attempt) -> None:
    """Mark the job as running at its first sign of life; no change unless it is LAUNCHING."""
    now = utc_now()
    attempt.heartbeat_at = now
    if attempt.started_at is None:
        attempt.started_at = now
    session.add(attempt)
    if job.state == JobState.LAUNCHING:
        job.started_at = now
        alarms.note_shortage(session, job=job, shortage=None)
        move(session, job=job, to=JobState.RUNNING)


def request_stop(session: Session, *, job_id: str) -> Job:
    """Stop at once what is queued, and at a checkpoint what runs. Asking twice is fine."""
    job = get_locked_job(session, job_id=job_id)
    if job.state == JobState.STOPPING:
        return job
    if job.state not in STOPPABLE:
        raise JobNotStoppable(f"The job is {job.state.value}; there is nothing to stop.")
    job.stop_requested_at = utc_now()
    if job.state == JobState.QUEUED:
        alarms.end_attempt(session, job=job)
    move(session, job=job, to=JobState.STOPPED if job.state == JobState.QUEUED else JobState.STOPPING)
    return job


def settle(
    session: Session,
    *,
    job_id: str,
    attempt: int,
    state: JobState,
    exit_code: int | None = None,
    reason: str | None = None,
    cause: str | None = None,
) -> bool:
    """End an attempt in a finished state; its token is void from then on.

    The exit code decides the state. What the run said of itself in its outcome event
    fills in the reason and cause where none are given. False when the attempt was
    settled before or a newer one has begun: settling twice changes nothing.
    """
    if state not in FINISHED:
        raise ValueError(f"{state} is no end")
    job = repository.lock_job(session, job_id=job_id)
    if job is None or job.attempt != attempt or job.state not in ACTIVE:
        return False
    row = repository.find_attempt(session, job_id=job_id, number=attempt)
    job.exit_code = exit_code
    if state in {JobState.FAILED, JobState.CRASHED}:
        job.reason = reason or (row.reason if row else None)
        job.cause = cause or (row.cause if row else None)
    elif state == JobState.SUCCEEDED:
        # It came to its end before a stop that had a reason reached it; its own note on the end stays.
        job.reason = row.reason if row is not None and row.outcome == JobState.SUCCEEDED else None
        job.cause = None
    if row is not None:
        row.finished_at = utc_now()
        row.exit_code = exit_code
        row.reason, row.cause = job.reason, job.cause
        session.add(row)
    alarms.end_attempt(session, job=job)
    move(session, job=job, to=state)
    return True


def resume(session: Session, *, job_id: str, data_root: Path, checkpoint_step: int | None = None) -> Job:
    """Queue a new attempt from a checkpoint: the named one, else the newest, else from the start.

    Metrics and rollouts behind the checkpoint belong to a way that is not continued; they
    are removed, so that the new attempt's steps follow on.
    """
    job = get_locked_job(session, job_id=job_id)
    if job.state not in RESUMABLE:
        raise JobNotResumable(f"The job is {job.state.value}; only stopped or failed jobs can be resumed.")
    checkpoint = _choose_checkpoint(session, job=job, step=checkpoint_step, data_root=data_root)
    job.resume_from = checkpoint.path if checkpoint else None
    job.resume_step = checkpoint.step if checkpoint else None
    last_step = checkpoint.step if checkpoint else -1
    behind = [row for row in repository.list_checkpoints(session, job_id=job.id) if row.step > last_step]
    exporting = repository.list_exporting_steps(session, job_id=job.id)
    if any(row.step in exporting for row in behind):
        raise CheckpointInUse(
            "A later checkpoint is being exported and would be overwritten. Try again later."
        )
    if any(step > last_step for step in evaluating.list_asked_steps(session, job_id=job.id)):
        message = (
            "A later checkpoint is being evaluated and would be overwritten. Wait, or cancel the evaluation."
        )
        raise CheckpointInUse(message)
    _give_up_evaluations(session, job=job, last_step=last_step)
    checkpoint_metrics.freeze(session, job=job, checkpoints=behind)
    metric_store.truncate(session, job=job, last_step=last_step)
    rollout_store.truncate(session, job_id=job.id, last_step=last_step)
    timing_store.truncate(session, job_id=job.id, last_step=last_step)
    reporting.reopen(session, job_id=job.id)
    alarms.replace_attempt(session, job_id=job.id)
    job.attempt += 1
    job.queued_at = utc_now()
    job.ordered_at = None
    if job.kind == SERVE:
        job.priority = 0  # a place in front was for the requests that waited then
    job.launched_at = job.started_at = job.finished_at = job.stop_requested_at = None
    job.exit_code = job.reason = job.cause = job.phase = None
    job.first_step = job.first_step_at = job.last_step_at = None
    job.step = max(last_step, 0)
    move(session, job=job, to=JobState.QUEUED)
    events.publish(session, job=job, kind="reset", data=StreamReset(at=utc_now()))
    session.flush()
    return job


def delete_job(session: Session, *, job_id: str) -> None:
    """Forget a finished job; the tombstone that stays tells the workers to remove its files."""
    job = get_locked_job(session, job_id=job_id)
    if job.kind == EVALUATE:
        raise JobOfEvaluation(
            "The job belongs to an evaluation. Delete the evaluation instead.",
            {"evaluation": job.evaluation_id},
        )
    if job.state in ACTIVE:
        raise JobStillActive(f"The job is {job.state.value}. Stop it first.")
    if repository.list_exporting_steps(session, job_id=job_id):
        raise CheckpointInUse("One of the job's checkpoints is being exported. Wait, or stop the export.")
    if evaluating.list_evaluating_steps(session, job_id=job_id):
        raise CheckpointInUse(
            "One of the job's checkpoints is being evaluated. Wait, or cancel the evaluation."
        )
    repository.delete_job(session, job_id=job_id)
    session.expunge(job)


def _give_up_evaluations(session: Session, *, job: Job, last_step: int) -> None:
    """End the job's own evaluations of checkpoints that belong to a way that is not continued."""
    for evaluation_job_id in evaluating.list_unfinished_jobs(session, job_id=job.id, after_step=last_step):
        evaluation_job = get_locked_job(session, job_id=evaluation_job_id)
        evaluating.forget_displacement(session, job_id=evaluation_job_id)
        if evaluation_job.state in STOPPABLE:
            request_stop(session, job_id=evaluation_job_id)
    evaluating.delete_behind(session, job_id=job.id, step=last_step)


def is_overdue(job: Job, attempt: Attempt | None, *, timeout_s: float) -> bool:
    """Tell whether a running attempt has been silent for longer than it may."""
    if job.state not in HOLDS_SLOTS or attempt is None or attempt.heartbeat_at is None:
        return False
    return (utc_now() - attempt.heartbeat_at).total_seconds() > timeout_s


def has_files(checkpoint: Checkpoint, *, data_root: Path) -> bool:
    """Tell whether a checkpoint can be resumed: its folder is there, and among the job's own."""
    if checkpoint.pruned_at is not None:
        return False
    return find_folder(checkpoint, checkpoint.path, data_root=data_root) is not None


def find_folder(checkpoint: Checkpoint, path: str, *, data_root: Path) -> Path | None:
    """Return the folder that a run reported for its checkpoint; None unless it is in the job's own folder."""
    try:
        folder = (data_root / path).resolve()
        is_own = folder.is_relative_to(locate_checkpoints(data_root, checkpoint.job_id))
        return folder if is_own and folder.is_dir() else None
    except (OSError, ValueError, RuntimeError):  # a path that no file system has
        return None


def may_be_written(job: Job, step: int) -> bool:
    """Tell whether a run that is under way could be writing the checkpoint of a step."""
    return job.state in HOLDS_SLOTS and step >= job.step and step != job.resume_step


def may_be_overwritten(job: Job, checkpoint: Checkpoint) -> bool:
    """Tell whether it is from an earlier attempt, and the resumed run has yet to rewrite its step."""
    return checkpoint.attempt < job.attempt and may_be_written(job, checkpoint.step)


def get_usable_checkpoint(session: Session, *, job_id: str, step: int) -> Checkpoint:
    """Return the checkpoint of a step; raises if there is none or it was pruned."""
    checkpoint = repository.find_checkpoint(session, job_id=job_id, step=step)
    if checkpoint is None:
        raise CheckpointNotFound(f"The job has no checkpoint at step {step}.")
    if checkpoint.pruned_at is not None:
        raise CheckpointPruned(
            f"The checkpoint at step {step} was pruned. Choose another one.", {"step": step}
        )
    return checkpoint


def _choose_checkpoint(session: Session, *, job: Job, step: int | None, data_root: Path) -> Checkpoint | None:
    if step is not None:
        checkpoint = get_usable_checkpoint(session, job_id=job.id, step=step)
        if not has_files(checkpoint, data_root=data_root):
            raise CheckpointNotFound(f"The files of the checkpoint at step {step} are missing.")
        return checkpoint
    checkpoints = repository.list_checkpoints(session, job_id=job.id)
    return next((found for found in checkpoints if has_files(found, data_root=data_root)), None)


def _issue_token(session: Session, *, job: Job) -> Claim:
    token = new_secret(JOB_TOKEN_PREFIX)
    attempt = repository.find_attempt(session, job_id=job.id, number=job.attempt)
    if attempt is None:
        attempt = Attempt(job_id=job.id, number=job.attempt, resume_from=job.resume_from)
    attempt.token_hash = hash_secret(token)
    session.add(attempt)
    session.add(job)
    session.flush()
    return Claim(job=job, submission_id=submission_id(job), token=token)
