"""Settles an attempt together with what follows from its end, in one transaction.

A training that succeeded queues the export that was asked for with it; an export that succeeded
registers its model. Either happens exactly once, because an attempt is settled exactly once.
"""

import logging
from dataclasses import replace

from sqlmodel import Session
from trellis_api.jobs import checkpoints, exports, repository, service
from trellis_api.jobs.export_orders import ExportOrder
from trellis_api.jobs.models import EXPORT, Job
from trellis_api.models.inspection import ModelFacts, OutsideRoot, UnusableFolder
from trellis_api.models.registration import inspect_export, register_export
from trellis_contracts.attempt import REWARD_KEYS_FILE
from trellis_contracts.states import JobState

from trellis_workers.core.transaction import get_settings, write
from trellis_workers.jobs.verdict import Settlement

logger = logging.getLogger(__name__)


def settle(job: Job, settlement: Settlement) -> bool:
    """End the job's attempt; False where that had happened before.

    Of an export that succeeded, all weights are hashed first, which may take minutes.
    """
    facts: ModelFacts | None = None
    if job.kind == EXPORT and settlement.state == JobState.SUCCEEDED:
        settlement, facts = _look_at_export(job, settlement)
    with write() as session:
        has_settled = service.settle(
            session,
            job_id=job.id,
            attempt=job.attempt,
            state=settlement.state,
            exit_code=settlement.exit_code,
            reason=settlement.reason,
            cause=settlement.cause,
        )
        if has_settled:
            _follow_up(session, job, facts)
    if not has_settled:
        return False
    # Keys of judges do not outlive the run that they were handed to.
    (get_settings().attempt_dir(job.id, job.attempt) / REWARD_KEYS_FILE).unlink(missing_ok=True)
    state, reason = settlement.state.value, settlement.reason
    logger.info("job %s: attempt %d %s (%s)", job.id, job.attempt, state, reason)
    return True


def _look_at_export(job: Job, settlement: Settlement) -> tuple[Settlement, ModelFacts | None]:
    """What the export wrote; one that wrote nothing usable has failed, whatever its exit code."""
    try:
        return settlement, inspect_export(get_settings(), ExportOrder.model_validate(job.export))
    except (UnusableFolder, OutsideRoot) as error:
        reason = f"What the export wrote cannot be used: {error}"
        return replace(settlement, state=JobState.FAILED, reason=reason, cause="export_invalid"), None


def _follow_up(session: Session, job: Job, facts: ModelFacts | None) -> None:
    settings = get_settings()
    current = service.get_locked_job(session, job_id=job.id)
    if facts is not None:
        register_export(session, settings, job=current, facts=facts)
        return
    if job.kind == EXPORT:
        order = ExportOrder.model_validate(job.export)
        # Removed by a task of its own (``leftovers.py``): gigabytes may take minutes.
        repository.add_leftover(session, job_id=job.id, model_id=order.model_id)
        return
    # The metrics of the last step came after its checkpoint, and may name another one the best.
    checkpoints.apply_retention(session, job=current)
    try:
        with session.begin_nested():
            exports.queue_promised(session, job=current, settings=settings)
    except Exception:  # an edge: whatever is wrong with the export, the training has ended as it has
        logger.exception("job %s: the export that was asked for could not be queued", job.id)
        session.refresh(current)
        problem = "The export could not be queued; the workers' log tells why. Export the checkpoint by hand."
        current.export_as = {**(current.export_as or {}), "problem": problem}
        session.add(current)
