"""Which checkpoints of a training are to be measured: decided in the transaction that takes them in.

From then on the row in ``due_evaluations`` keeps the checkpoint's files, and a worker's sweep makes an
evaluation of it (``trellis_api/evaluations/training.py``). Whatever dies in between, it happens once.
"""

import logging
from datetime import timedelta

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.evaluations.orders import EvaluateWhileTraining
from trellis_api.jobs.evaluating import repository
from trellis_api.jobs.evaluating.models import DueEvaluation, DueState
from trellis_api.jobs.models import TRAIN, Checkpoint, Job

log = logging.getLogger(__name__)
#: Checkpoints of a job that may wait to be measured. More are not kept on disk for it: where evaluations
#: take longer than the training needs from one to the next, they would fill it, and that ends the training.
MOST_OPEN = 8


def read_order(job: Job) -> EvaluateWhileTraining | None:
    """Return the job's settings for evaluating its checkpoints; None if that was not requested."""
    if job.kind != TRAIN or not job.evaluate:
        return None
    fields = EvaluateWhileTraining.model_fields.keys()
    return EvaluateWhileTraining.model_validate(
        {key: value for key, value in job.evaluate.items() if key in fields}
    )


def note_checkpoint(session: Session, *, job: Job, checkpoint: Checkpoint) -> None:
    """Write down that a new checkpoint is to be measured, if it is. The caller holds the job's lock."""
    order = read_order(job)
    if order is None or repository.find_due(session, job_id=job.id, step=checkpoint.step) is not None:
        return
    last = repository.find_last_before(session, job_id=job.id, step=checkpoint.step)
    if _is_due(order, job, checkpoint, last):
        _add(session, checkpoint, is_final=False)


def note_end(session: Session, *, job: Job, last: Checkpoint | None) -> None:
    """Write down that the last checkpoint of a training is to be measured: it has ended well."""
    order = read_order(job)
    if order is None or not order.at_end or last is None:
        return
    if job.state not in {JobState.SUCCEEDED, JobState.STOPPED}:
        return
    found = repository.find_due(session, job_id=job.id, step=last.step)
    if found is None:
        _add(session, last, is_final=True)
    elif found.state == DueState.SKIPPED.value:
        found.state, found.problem, found.is_final = DueState.WAITING.value, None, True
        session.add(found)
        session.flush()


def _is_due(
    order: EvaluateWhileTraining, job: Job, checkpoint: Checkpoint, last: DueEvaluation | None
) -> bool:
    if order.every_steps is not None:
        done = last.step if last is not None else 0
        return checkpoint.step // order.every_steps > done // order.every_steps
    if order.every_minutes is not None:
        # A pause between two attempts is no training.
        moments = [moment for moment in (job.started_at, last.saved_at if last else None) if moment]
        return not moments or checkpoint.created_at - max(moments) >= timedelta(minutes=order.every_minutes)
    return False


def _add(session: Session, checkpoint: Checkpoint, *, is_final: bool) -> None:
    row = DueEvaluation(
        job_id=checkpoint.job_id, step=checkpoint.step, saved_at=checkpoint.created_at, is_final=is_final
    )
    if not is_final and repository.count_open(session, job_id=checkpoint.job_id) >= MOST_OPEN:
        row.state = DueState.SKIPPED.value
        log.warning(
            "step %d of job %s is not measured, as %d wait",
            checkpoint.step,
            checkpoint.job_id,
            MOST_OPEN,
        )
        row.problem = f"{MOST_OPEN} checkpoints were already waiting for evaluation when this one was saved."
    session.add(row)
    session.flush()
