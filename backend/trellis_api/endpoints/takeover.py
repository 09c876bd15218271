"""A newer checkpoint in the engine of an older one of its job, in place of that one's weights.

It is asked for as an adapter is (``sharing.py``): the engine's run is told with each heartbeat, and answers
with an event. Until then the older checkpoint is served as before. Then the engine is the newer one's, and
the older one's endpoint has stopped, with a finished job of its own; asked for again, that gets an engine.
"""

import logging
import secrets
from datetime import timedelta

from sqlmodel import Session
from trellis_contracts.attempt import REPLACE_TIMEOUT_S
from trellis_contracts.events import AdapterEvent
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.endpoints import repository
from trellis_api.endpoints.models import IDLE_AFTER, Endpoint
from trellis_api.endpoints.own_engine import add_own_job, forget_address, name_job
from trellis_api.endpoints.schemas import EndpointStart
from trellis_api.jobs import service
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import lock_job

log = logging.getLogger(__name__)

#: Cause of a stop of an endpoint whose engine has the weights of a newer checkpoint.
REPLACED = "endpoint_replaced"
#: A ready engine that has not answered for so long never will: it waits for less, after it has gathered the
#: weights.
LOST_AFTER = timedelta(seconds=REPLACE_TIMEOUT_S) + timedelta(minutes=30)


def find_predecessor(
    session: Session, *, row: Endpoint, request: EndpointStart
) -> tuple[Endpoint, Job] | None:
    """Return the endpoint, with its job locked, whose engine a checkpoint may take over; None without one.

    It serves an older checkpoint of the same job with the same context length, is not marked to be kept and
    not in use: two steps may be compared, and whoever asks for the newest one may not be alone.
    """
    if row.target_job_id is None or row.target_step is None:
        return None
    for older, seen in repository.list_older(session, job_id=row.target_job_id, step=row.target_step):
        if not _is_free(session, older, seen, request=request):
            continue
        # Not waited for: the training's job is locked here, and an engine that ends locks that after its own.
        job = lock_job(session, job_id=seen.id, waits=False)
        session.refresh(older)  # somebody may have marked it to be kept between the two looks
        if job is not None and _is_free(session, older, job, request=request):
            return older, job
    return None


def ask(row: Endpoint, host: tuple[Endpoint, Job]) -> Job:
    """Let the engine of ``host`` take the row's weights: the reply to its next heartbeat names them."""
    engine, job = host
    forget_address(row)
    row.job_id, row.engine_id, row.max_lora_rank = job.id, engine.id, None
    row.asked_with = None  # by which it is no adapter
    row.load_id, row.asked_attempt, row.asked_at = secrets.token_hex(8), job.attempt, utc_now()
    row.unloaded_at = row.unloaded_for = None
    log.info("endpoint %s is to take over the engine of %s", row.id, engine.id)
    return job


def note_answer(
    session: Session, *, row: Endpoint | None, host: Endpoint, job: Job, attempt: int, event: AdapterEvent
) -> None:
    """Record that the engine has the weights of ``row``, or can't take them: then it gets its own engine.

    A refusal settles only the request that it answers. Weights that are there are those of the checkpoint,
    whichever request for it they came by.
    """
    if attempt != job.attempt or (row is not None and row.id == host.id):
        return  # the endpoint has the engine already, from an earlier request
    is_asked = row is not None and row.engine_id == host.id and row.asked_attempt == attempt
    if event.reason is not None:
        if row is not None and is_asked and row.load_id == event.load_id:
            give_own_engine(session, row=row, job=job, reason=event.reason)
    elif row is not None and is_asked:
        _hand_over(session, old=host, new=row, job=job)
    elif job.state in service.STOPPABLE:
        # The request was taken back too late: what is loaded is neither what the endpoint names nor wanted.
        log.warning("endpoint %s is stopped: its weights were replaced by ones nobody waits for", host.id)
        newer = f"checkpoint {row.name}" if row is not None else "a newer checkpoint"
        job.reason = (
            f"Stopped because its engine has the weights of {newer}, which nobody waits for any more."
        )
        job.cause = REPLACED
        service.request_stop(session, job_id=job.id)


def give_own_engine(session: Session, *, row: Endpoint, job: Job, reason: str) -> None:
    """Leave the engine of the older checkpoint, which stays as it is, for one of its own."""
    log.warning("endpoint %s gets an engine of its own instead of an older checkpoint's: %s", row.id, reason)
    own = add_own_job(session, row=row, model_id=job.model_id, slots=job.gpus)
    session.add(row)
    session.flush()
    service.announce(session, job=own)


def leave_engine(session: Session, job: Job) -> None:
    """Give newer checkpoints that wait to take over an engine that ends engines of their own."""
    for row in repository.list_sharing(session, job_id=job.id, attempt=job.attempt):
        if row.is_takeover:
            give_own_engine(session, row=row, job=job, reason="The older checkpoint's engine ended.")


def _hand_over(session: Session, *, old: Endpoint, new: Endpoint, job: Job) -> None:
    """Make the engine that of ``new``, and settle ``old``, which gives up its checkpoint."""
    new.engine_id, new.load_id, new.asked_attempt, new.asked_at = None, None, None, None
    new.ready_attempt, new.ready_at = job.attempt, utc_now()
    new.host, new.port, new.context_length = old.host, old.port, old.context_length
    new.tool_problem, new.is_replaceable = old.tool_problem, old.is_replaceable
    job.name = name_job(new)
    # A job of its own: whoever deletes the newer one's does not delete this endpoint with it.
    own = add_own_job(session, row=old, model_id=job.model_id, slots=job.gpus)
    own.reason, own.cause = f"Stopped because checkpoint {new.name} took over its engine.", REPLACED
    session.add_all([old, new, job])
    service.move(session, job=own, to=JobState.STOPPED)
    service.announce(session, job=job)


def _is_free(session: Session, older: Endpoint, job: Job, *, request: EndpointStart) -> bool:
    """Tell whether the older endpoint has an engine of its own that nobody minds to lose."""
    return (
        (older.job_id, older.engine_id, older.ready_attempt) == (job.id, None, job.attempt)
        and job.state == JobState.RUNNING
        and older.is_replaceable
        and older.is_preemptible
        and request.max_model_len in {older.max_model_len, older.context_length}
        and not _is_in_use(older)
        and not repository.list_sharing(session, job_id=job.id, attempt=job.attempt)
    )


def _is_in_use(row: Endpoint) -> bool:
    used = [each for each in (row.ready_at, row.last_used_at) if each is not None]
    return bool(used) and utc_now() - max(used) < IDLE_AFTER
