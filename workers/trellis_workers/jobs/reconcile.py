"""Compares active jobs with Ray's own view and with their heartbeats, and settles those that are over.

Ray knows whether a run's process lives, and its exit code decides how the run ended. A process that lives
and has frozen is told by ``silence.py``. Heartbeats alone count only while Ray cannot be asked: an API that
was down receives none from a run that is well.
"""

import logging
import time
from datetime import timedelta

from trellis_api.core.columns import utc_now
from trellis_api.jobs import repository, service
from trellis_api.jobs.alarms import service as alarms
from trellis_api.jobs.models import EXPORT, SERVE, TRAIN, Attempt, Job
from trellis_contracts.states import JobState

from trellis_workers.core.ray_client import OVER, RayAwayError, RayJob, RayJobs, RayStatus, get_ray
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write
from trellis_workers.jobs import silence
from trellis_workers.jobs.addresses import tell_addresses
from trellis_workers.jobs.drain import drain_spool
from trellis_workers.jobs.launch import METADATA_ROOT
from trellis_workers.jobs.settle import settle
from trellis_workers.jobs.stop import end_overdue_stop
from trellis_workers.jobs.verdict import Settlement, decide
from trellis_workers.jobs.waiting import look_for_shortage

logger = logging.getLogger(__name__)

#: A run that Ray has forgotten is dead, but what it sent last may still be on its way.
_FORGOTTEN_SILENCE_S = 10.0
_ORPHANS_INTERVAL_S = 30.0

_LOST = Settlement(
    JobState.CRASHED,
    reason="The Ray cluster has no record of the run: it was restarted, or the machine was lost.",
    cause="node_lost",
)
_SILENT = Settlement(
    JobState.CRASHED,
    reason="The run stopped reporting, and the Ray cluster cannot be reached.",
    cause="heartbeat_lost",
)
_NEVER_STARTED = Settlement(JobState.STOPPED)


class _Clock:
    """What a worker process remembers between two sweeps."""

    ray_away_since: float | None = None
    orphans_at: float = 0.0


def reconcile() -> bool:
    """Settle every job whose attempt is over; end what nobody wants any more. Whether slots became free."""
    ray = get_ray()
    with read() as session:
        active = [
            (job, repository.find_attempt(session, job_id=job.id, number=job.attempt))
            for job in repository.list_holding_slots(session)
        ]
    tell_addresses(job for job, _ in active)
    is_ray_away = has_settled = False
    for job, attempt in active:
        try:
            if is_ray_away:
                has_settled |= _judge_without_ray(job, attempt)
            else:
                has_settled |= _reconcile_job(ray, job, attempt)
        except RayAwayError as error:
            logger.warning("job %s: could not query the Ray cluster: %s", job.id, error)
            is_ray_away = True  # each call may take seconds to fail: ask no more in this sweep
            has_settled |= _judge_without_ray(job, attempt)
        except Exception:  # the edge of the process: one job must not hold up the others
            logger.exception("job %s could not be reconciled", job.id)
    if not is_ray_away:
        _Clock.ray_away_since = None
        _stop_orphans_now_and_then(ray)
    return has_settled


def _reconcile_job(ray: RayJobs, job: Job, attempt: Attempt | None) -> bool:
    """Reconcile a job with Ray; returns whether it was settled."""
    ray_job = ray.find(service.submission_id(job))
    if ray_job is None:
        settlement = _judge_forgotten(job, attempt)
        return settlement is not None and _settle(job, settlement)
    if ray_job.status in OVER:
        # What an export wrote is hashed, which no sweep has the time for (``finish_exports.py``); what an
        # evaluation left is read by a sweep of its own (``trellis_workers/evaluations/finish.py``).
        return job.kind in {TRAIN, SERVE} and settle_over(job, ray_job)
    if ray_job.status == RayStatus.RUNNING and silence.has_frozen(job, attempt):
        return _end_frozen(ray, job)
    if job.state == JobState.STOPPING:
        if ray_job.status == RayStatus.PENDING:
            # Ray ends it as soon as it is placed, which may be never; until then nothing of it runs.
            ray.stop(ray_job.submission_id)
            return _settle(job, _NEVER_STARTED)
        end_overdue_stop(ray, job)
        return False
    look_for_shortage(job, attempt, ray_job)
    if attempt is not None and job.kind not in {EXPORT, SERVE}:  # they have no steps to make
        _look_for_stall(job, attempt)
    return False


def _end_frozen(ray: RayJobs, job: Job) -> bool:
    """Let Ray end a run that has frozen, with all its processes; one that it cannot end is given up."""
    if silence.note_end(job):
        return _settle(job, silence.FROZEN)
    logger.warning("job %s: attempt %d is frozen, killing it", job.id, job.attempt)
    ray.stop(service.submission_id(job))
    return False


def settle_over(job: Job, ray_job: RayJob) -> bool:
    """Settle an attempt that is over on Ray; whether it was."""
    # What the run said last may decide how it ended: it is read after the spool is drained.
    if not _drain(job):
        return False
    with read() as session:
        attempt = repository.find_attempt(session, job_id=job.id, number=job.attempt)
    ended_for = silence.FROZEN if silence.was_ended(job) else None
    return _settle(job, decide(job, attempt, ray_job, ended_for=ended_for), is_drained=True)


def _look_for_stall(job: Job, attempt: Attempt) -> None:
    """Raise an alarm where a run gives signs of life and makes no steps. It goes on; steps clear it."""
    is_silent = service.is_overdue(job, attempt, timeout_s=get_settings().heartbeat_timeout_s)
    if is_silent or not alarms.is_stalled_now(job, attempt):
        return
    with write() as session:
        current = repository.lock_job(session, job_id=job.id)
        row = repository.find_attempt(session, job_id=job.id, number=job.attempt)
        if current is not None and row is not None and current.attempt == job.attempt:
            session.refresh(row)
            if alarms.check_stalled(session, job=current, attempt=row):
                logger.warning("job %s: attempt %d makes no progress", job.id, job.attempt)


def _judge_forgotten(job: Job, attempt: Attempt | None) -> Settlement | None:
    """Return how to settle a submission unknown to Ray; None if it may still be launched or report."""
    has_reported = attempt is not None and attempt.heartbeat_at is not None
    if has_reported:
        return _LOST if service.is_overdue(job, attempt, timeout_s=_FORGOTTEN_SILENCE_S) else None
    timeout = timedelta(seconds=get_settings().launch_timeout_s)
    is_stale = job.launched_at is not None and utc_now() - job.launched_at > timeout
    # A LAUNCHING row is launched again by the sweep of launch.py; one that was told to stop is not.
    return _NEVER_STARTED if job.state == JobState.STOPPING and is_stale else None


def _judge_without_ray(job: Job, attempt: Attempt | None) -> bool:
    """Count long-silent runs as lost while Ray is away for long; returns whether the job was settled."""
    now = time.monotonic()
    _Clock.ray_away_since = _Clock.ray_away_since or now
    timeout_s = get_settings().heartbeat_timeout_s
    is_lost = now - _Clock.ray_away_since > timeout_s
    return is_lost and service.is_overdue(job, attempt, timeout_s=timeout_s) and _settle(job, _SILENT)


def _drain(job: Job) -> bool:
    folder = get_settings().attempt_dir(job.id, job.attempt)
    return drain_spool(folder, job_id=job.id, attempt=job.attempt)


def _settle(job: Job, settlement: Settlement, *, is_drained: bool = False) -> bool:
    if not is_drained and not _drain(job):
        return False
    if settlement.state == JobState.CRASHED and job.state == JobState.STOPPING:
        # It was to end anyway, and it has ended.
        settlement = Settlement(JobState.STOPPED, settlement.exit_code, settlement.reason, settlement.cause)
    return settle(job, settlement)


def _stop_orphans_now_and_then(ray: RayJobs) -> None:
    if time.monotonic() < _Clock.orphans_at:
        return
    _Clock.orphans_at = time.monotonic() + _ORPHANS_INTERVAL_S
    try:
        _stop_orphans(ray)
    except RayAwayError as error:
        logger.warning("could not look for orphaned runs: %s", error)


def _stop_orphans(ray: RayJobs) -> None:
    """End runs of ours that hold resources though no active job stands for them."""
    # Ray first: whatever it lists had a row before it was submitted.
    submissions = ray.list_unfinished()
    with read() as session:
        wanted = {service.submission_id(job) for job in repository.list_holding_slots(session)}
    for submission in submissions:
        is_ours = submission.metadata.get(METADATA_ROOT) == str(get_settings().data_root)
        if is_ours and submission.submission_id not in wanted:
            logger.warning("run %s belongs to no active job, killing it", submission.submission_id)
            ray.stop(submission.submission_id)
