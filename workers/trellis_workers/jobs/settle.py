"""Settles an attempt together with what follows from its end, in one transaction.

A training that succeeded queues the export that was asked for with it; an export that succeeded
registers its model; an evaluation that succeeded records its scores, and one that made room for a training
is queued again. Each happens exactly once, because an attempt is settled exactly once.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from sqlmodel import Session
from trellis_api.evaluations import recording
from trellis_api.evaluations import repository as evaluations
from trellis_api.evaluations import service as evaluation_service
from trellis_api.jobs import repository, service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.evaluating import due
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.exports.orders import ExportOrder
from trellis_api.jobs.models import EVALUATE, EXPORT, SERVE, Job
from trellis_api.models.inspection import ModelFacts, OutsideRoot, UnusableFolder
from trellis_api.models.registration import inspect_export, register_export
from trellis_contracts.attempt import KEY_FILES
from trellis_contracts.evaluation import EvaluationResult
from trellis_contracts.states import JobState

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write
from trellis_workers.jobs.verdict import Settlement

logger = logging.getLogger(__name__)


def settle(job: Job, settlement: Settlement) -> bool:
    """End the job's attempt; False where that had happened before.

    Of an export that succeeded, all weights are hashed first, which may take minutes.
    """
    facts: ModelFacts | EvaluationResult | None = None
    if settlement.state == JobState.SUCCEEDED and job.kind in _LOOK_AT:
        settlement, facts = _LOOK_AT[job.kind](job, settlement)
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
    for name in KEY_FILES:
        (get_settings().attempt_dir(job.id, job.attempt) / name).unlink(missing_ok=True)
    state, reason = settlement.state.value, settlement.reason
    logger.info("job %s: attempt %d %s (%s)", job.id, job.attempt, state, reason)
    return True


def _look_at_export(job: Job, settlement: Settlement) -> tuple[Settlement, ModelFacts | None]:
    """Inspect what the export wrote; without a usable model it has failed, whatever its exit code."""
    try:
        return settlement, inspect_export(get_settings(), ExportOrder.model_validate(job.export))
    except (UnusableFolder, OutsideRoot) as error:
        reason = f"The exported model is unusable: {error}"
        return replace(settlement, state=JobState.FAILED, reason=reason, cause="export_invalid"), None


def _look_at_evaluation(job: Job, settlement: Settlement) -> tuple[Settlement, EvaluationResult | None]:
    """Read the evaluation's result; without a usable one it has failed, whatever its exit code."""
    with read() as session:
        row = evaluations.find_by_job(session, job_id=job.id)
    try:
        return settlement, recording.read_result(get_settings(), row) if row is not None else None
    except recording.UnusableResult as error:
        reason = f"The evaluation's result is unusable: {error}"
        return replace(settlement, state=JobState.FAILED, reason=reason, cause="evaluation_invalid"), None


_LOOK_AT: dict[str, Callable[[Job, Settlement], tuple[Settlement, ModelFacts | EvaluationResult | None]]] = {
    EXPORT: _look_at_export,
    EVALUATE: _look_at_evaluation,
}


def _follow_up(session: Session, job: Job, facts: ModelFacts | EvaluationResult | None) -> None:
    settings = get_settings()
    current = service.get_locked_job(session, job_id=job.id)
    if job.kind == SERVE:
        return
    if job.kind == EVALUATE:
        _follow_up_evaluation(session, current, facts)
        return
    if isinstance(facts, ModelFacts):
        register_export(session, settings, job=current, facts=facts)
        return
    if job.kind == EXPORT:
        order = ExportOrder.model_validate(job.export)
        # Removed by a task of its own (``leftovers.py``): gigabytes may take minutes.
        repository.add_leftover(session, job_id=job.id, model_id=order.model_id)
        return
    _note_last_checkpoint(session, current)
    # The metrics of the last step came after its checkpoint, and may name another one the best.
    checkpoints.apply_retention(session, job=current)
    try:
        with session.begin_nested():
            exports.queue_promised(session, job=current, settings=settings)
    except Exception:  # an edge: whatever is wrong with the export, the training has ended as it has
        logger.exception("job %s: the requested export could not be queued", job.id)
        session.refresh(current)
        problem = "The export could not be queued; see the workers' log. Export the checkpoint manually."
        current.export_as = {**(current.export_as or {}), "problem": problem}
        session.add(current)


def _note_last_checkpoint(session: Session, job: Job) -> None:
    """Let the last checkpoint be measured, where that was asked for; it is kept from now on."""
    data_root = get_settings().data_root
    # What earlier attempts saved behind the checkpoint that was continued from belongs to another way.
    resumed = -1 if job.resume_step is None else job.resume_step
    last = next(
        (
            row
            for row in repository.list_checkpoints(session, job_id=job.id)
            if (row.attempt == job.attempt or row.step <= resumed)
            and service.has_files(row, data_root=data_root)
        ),
        None,
    )
    due.note_end(session, job=job, last=last)


def _follow_up_evaluation(session: Session, job: Job, facts: ModelFacts | EvaluationResult | None) -> None:
    if isinstance(facts, EvaluationResult):
        recording.record_result(session, job=job, result=facts)
    if evaluation_service.go_on_if_displaced(session, get_settings(), job=job):
        logger.info("job %s: requeued after being preempted by a training job", job.id)
