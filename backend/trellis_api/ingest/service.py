"""Takes in what runs report: each batch in one transaction, each event exactly once.

The job's row is locked first, so batches of one job are applied one after the other,
and a repeated batch is recognised by its number whoever sends it.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlmodel import Session
from trellis_contracts.events import (
    AdapterEvent,
    CheckpointEvent,
    Event,
    Heartbeat,
    HeartbeatReply,
    IngestBatch,
    IngestReceipt,
    LogEvent,
    ManifestEvent,
    MetricsEvent,
    OutcomeEvent,
    ProgressEvent,
    RolloutsEvent,
    ServingEvent,
    ServingLoadEvent,
    TimelineEvent,
)
from trellis_contracts.states import JobState

from trellis_api.auth.secrets import hash_secret
from trellis_api.core.redaction import redact, redact_tree
from trellis_api.core.texts import storable, storable_tree
from trellis_api.endpoints import service as endpoints
from trellis_api.endpoints.adapters import list_adapters
from trellis_api.endpoints.sharing import note_adapter
from trellis_api.ingest.errors import InvalidJobToken, MalformedBatch, SequenceGap, StaleAttempt
from trellis_api.jobs import repository, service
from trellis_api.jobs.alarms import service as alarms
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.evaluating import due
from trellis_api.jobs.events import service as events
from trellis_api.jobs.events.schemas import (
    CheckpointSaved,
    ManifestWritten,
    ProgressMade,
    RolloutsSampled,
)
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.metrics.query import name_non_finite
from trellis_api.jobs.models import Attempt, Checkpoint, Job
from trellis_api.jobs.presentation import estimate_eta_s
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.timing import store as timing_store

#: Larger numbers are no steps and no sizes; browsers cannot hold them exactly either.
MAX_NUMBER = 2**53
MAX_KEY_CHARACTERS = 256
#: What is published to pages: event name and data.
Published = list[tuple[str, Any]]


def authorise(session: Session, *, job_id: str, token: str) -> Attempt:
    """Return the attempt that a token belongs to; raises if it may not report (any more)."""
    attempt = repository.find_attempt_by_token(session, token_hash=hash_secret(token))
    if attempt is None or attempt.job_id != job_id:
        raise InvalidJobToken("The token is not that of this job.")
    job = service.get_job(session, job_id=job_id)
    if attempt.number < job.attempt:
        raise StaleAttempt(job.attempt)
    if attempt.finished_at is not None:
        raise InvalidJobToken("The attempt is over.")
    return attempt


def ingest_authorised(session: Session, *, job_id: str, token: str, batch: IngestBatch) -> IngestReceipt:
    """Take in a batch whose sender proves with the job's token that it may send it."""
    if authorise(session, job_id=job_id, token=token).number != batch.attempt:
        raise InvalidJobToken("The token is not that of this attempt.")
    return ingest_batch(session, job_id=job_id, batch=batch)


def ingest_batch(session: Session, *, job_id: str, batch: IngestBatch) -> IngestReceipt:
    """Take in a batch of the current attempt, whether it still runs or has been settled.

    A repeated number changes nothing. Raises ``SequenceGap`` when batches are missing
    before it and ``StaleAttempt`` when a newer attempt has taken over.
    """
    _check_limits(batch)
    job, attempt = _lock_attempt(session, job_id=job_id, number=batch.attempt)
    if batch.sequence < attempt.next_sequence:
        return IngestReceipt(accepted=False, expected=attempt.next_sequence)
    if batch.sequence > attempt.next_sequence:
        raise SequenceGap(attempt.next_sequence)
    attempt.next_sequence += 1
    service.mark_running(session, job=job, attempt=attempt)
    _apply(session, job=job, attempt=attempt, batch=batch)
    session.flush()
    return IngestReceipt(accepted=True, expected=attempt.next_sequence)


def record_heartbeat(
    session: Session, *, data_root: Path, job_id: str, token: str, heartbeat: Heartbeat
) -> HeartbeatReply:
    """Note a sign of life; say whether the run shall stop, and which adapters an engine shall serve."""
    if authorise(session, job_id=job_id, token=token).number != heartbeat.attempt:
        raise InvalidJobToken("The token is not that of this attempt.")
    job, attempt = _lock_attempt(session, job_id=job_id, number=heartbeat.attempt)
    service.mark_running(session, job=job, attempt=attempt)
    session.flush()
    return HeartbeatReply(
        stop_requested=job.state == JobState.STOPPING,
        adapters=list_adapters(session, data_root=data_root, job=job),
    )


def _lock_attempt(session: Session, *, job_id: str, number: int) -> tuple[Job, Attempt]:
    job = service.get_locked_job(session, job_id=job_id)
    if number < job.attempt:
        raise StaleAttempt(job.attempt)
    attempt = repository.find_attempt(session, job_id=job_id, number=number)
    if attempt is None:
        raise MalformedBatch(f"The job has no attempt {number}.")
    # Read again under the lock: another batch may have been applied since.
    session.refresh(attempt)
    return job, attempt


def _check_limits(batch: IngestBatch) -> None:
    for event in batch.events:
        if any(number > MAX_NUMBER for number in _list_numbers(event)):
            raise MalformedBatch(f"A number may be at most {MAX_NUMBER}.")
        if isinstance(event, MetricsEvent) and any(len(key) > MAX_KEY_CHARACTERS for key in event.values):
            raise MalformedBatch(f"A metric key may have {MAX_KEY_CHARACTERS} characters.")


def _list_numbers(event: Event) -> tuple[int, ...]:
    """Return the integers of an event, which have no upper bound in JSON."""
    match event:
        case MetricsEvent():
            return (event.step,)
        case TimelineEvent():
            return (event.step, *(response.tokens for response in event.responses))
        case RolloutsEvent():
            return (event.step, *(rollout.response_tokens for rollout in event.rollouts))
        case CheckpointEvent():
            return (event.step, event.size_bytes)
        case ProgressEvent():
            return (event.step, event.total_steps or 0)
        case ServingEvent():
            return (event.max_model_len or 0,)
        case ServingLoadEvent():
            return (event.running, event.waiting, event.requests)
        case OutcomeEvent():
            return (abs(event.exit_code) << 22,)  # a column of 32 bits
        case _:
            return ()


def _apply(session: Session, *, job: Job, attempt: Attempt, batch: IngestBatch) -> None:
    """Write all events; metrics together, because that is where the numbers are."""
    published: Published = []
    metrics: list[metric_store.StepMetrics] = []
    times: list[tuple[int, float]] = []
    for event in batch.events:
        if isinstance(event, MetricsEvent):
            values = {storable(key): value for key, value in event.values.items()}
            metrics.append((event.step, values))
            times.append((event.step, event.time.timestamp()))
            published.append(("metrics", _describe_metrics(event.step, values)))
        else:
            _APPLY[event.kind](session, job, attempt, event, published)
    metric_store.write(session, job=job, metrics=metrics)
    timing_store.write_times(session, job_id=job.id, attempt=attempt.number, times=times)
    if any(isinstance(event, CheckpointEvent) for event in batch.events):
        session.flush()
        # After the metrics, which tell the best one.
        checkpoints.apply_retention(session, job=job)
    events.publish_all(session, job=job, events=published)
    alarms.watch_metrics(session, job=job, attempt=attempt, metrics=metrics, times=times)


def _describe_metrics(step: int, values: dict[str, float]) -> dict[str, Any]:
    """Build ``MetricsReported`` by hand: this is the hottest line of the API."""
    finite = {key: value if math.isfinite(value) else None for key, value in values.items()}
    odd = {key: name_non_finite(value) for key, value in values.items() if not math.isfinite(value)}
    return {"step": step, "values": finite, "non_finite": odd}


def _apply_log(session: Session, job: Job, attempt: Attempt, event: LogEvent, published: Published) -> None:
    first, count = log_store.write(session, job=job, attempt=attempt.number, event=event)
    if count:
        published.append(("logs", {"first": first, "count": count}))


def _apply_rollouts(
    session: Session, job: Job, attempt: Attempt, event: RolloutsEvent, published: Published
) -> None:
    rollout_store.write(session, job_id=job.id, attempt=attempt.number, event=event)
    sampled = RolloutsSampled(step=event.step, split=event.split, count=len(event.rollouts))
    published.append(("rollouts", sampled))


def _apply_timeline(
    session: Session, job: Job, attempt: Attempt, event: TimelineEvent, _published: Published
) -> None:
    timing_store.write_timeline(session, job_id=job.id, attempt=attempt.number, event=event)


def _apply_checkpoint(
    session: Session, job: Job, attempt: Attempt, event: CheckpointEvent, published: Published
) -> None:
    row = repository.find_checkpoint(session, job_id=job.id, step=event.step)
    if row is None:
        row = Checkpoint(
            job_id=job.id, step=event.step, attempt=0, path="", size_bytes=0, created_at=event.time
        )
    row.attempt = attempt.number
    row.path = storable(event.path)
    row.hf_path = storable(event.hf_path) if event.hf_path else None
    row.size_bytes = event.size_bytes
    row.metrics = {storable(key): rollout_store.finite(value) for key, value in event.metrics.items()}
    row.earlier = None
    row.created_at = event.time
    row.pruned_at = row.removed_at = None  # a resumed run may write again what was removed before
    session.add(row)
    session.flush()
    due.note_checkpoint(session, job=job, checkpoint=row)
    saved = CheckpointSaved(step=row.step, has_hf=row.hf_path is not None, size_bytes=row.size_bytes)
    published.append(("checkpoint", saved))


def _apply_progress(
    _session: Session, job: Job, _attempt: Attempt, event: ProgressEvent, published: Published
) -> None:
    job.phase = event.phase
    job.step = max(job.step, event.step)
    if event.total_steps is not None:
        job.total_steps = event.total_steps
    if event.step > 0 and job.first_step is None:
        job.first_step, job.first_step_at = event.step, event.time
    if job.first_step is not None and (job.last_step_at is None or event.step == job.step):
        job.last_step_at = event.time
    published.append(
        (
            "progress",
            ProgressMade(
                phase=job.phase, step=job.step, total_steps=job.total_steps, eta_s=estimate_eta_s(job)
            ),
        )
    )


def _apply_manifest(
    session: Session, _job: Job, attempt: Attempt, event: ManifestEvent, published: Published
) -> None:
    attempt.manifest = redact_tree(storable_tree(event.manifest))
    session.add(attempt)
    published.append(("manifest", ManifestWritten(attempt=attempt.number)))


def _apply_serving(
    session: Session, job: Job, attempt: Attempt, event: ServingEvent, _published: Published
) -> None:
    endpoints.note_ready(session, job=job, attempt=attempt.number, event=event)


def _apply_serving_load(
    session: Session, job: Job, attempt: Attempt, event: ServingLoadEvent, _published: Published
) -> None:
    endpoints.note_load(session, job=job, attempt=attempt.number, event=event)


def _apply_adapter(
    session: Session, job: Job, attempt: Attempt, event: AdapterEvent, _published: Published
) -> None:
    note_adapter(session, job=job, attempt=attempt.number, event=event)


def _apply_outcome(
    session: Session, job: Job, attempt: Attempt, event: OutcomeEvent, _published: Published
) -> None:
    """Remember what the run says of itself; the reconciler settles by the exit code."""
    attempt.outcome = event.outcome
    attempt.exit_code = event.exit_code
    attempt.reason = redact(storable(event.reason)) if event.reason else None
    attempt.cause = storable(event.cause) if event.cause else None
    session.add(attempt)
    is_settled_without_reason = (
        job.state in {JobState.FAILED, JobState.CRASHED} and job.reason is None and attempt.reason is not None
    )
    if is_settled_without_reason:
        job.reason, job.cause = attempt.reason, attempt.cause
        service.announce(session, job=job)


_APPLY: dict[str, Callable[[Session, Job, Attempt, Any, Published], None]] = {
    "log": _apply_log,
    "rollouts": _apply_rollouts,
    "timeline": _apply_timeline,
    "checkpoint": _apply_checkpoint,
    "progress": _apply_progress,
    "manifest": _apply_manifest,
    "serving": _apply_serving,
    "serving_load": _apply_serving_load,
    "adapter": _apply_adapter,
    "outcome": _apply_outcome,
}
