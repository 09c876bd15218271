"""Evaluations that a training asks for: queued for the checkpoints that are due, and their scores taken in.

jobs/evaluating/due.py                          writes down which checkpoints are to be measured, as they come
→ trellis_workers/evaluations/queue_due.py      sweeps: calls the functions here, each in a transaction
→ create.py                                     queues the evaluation, below the training in priority
→ jobs/evaluating/scores.py                     puts the scores on the training's own curves

Whatever becomes of an evaluation, the training goes on; only a plateau that it was to look for stops it.
"""

import logging

from sqlmodel import Session
from trellis_contracts.evaluation import BenchmarkResult

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.evaluations import repository
from trellis_api.evaluations.create import create
from trellis_api.evaluations.models import TRAINING, Evaluation
from trellis_api.evaluations.schemas import CheckpointTarget, EvaluationCreate
from trellis_api.jobs import repository as jobs
from trellis_api.jobs.evaluating import repository as due_rows
from trellis_api.jobs.evaluating import scores
from trellis_api.jobs.evaluating.due import read_order
from trellis_api.jobs.evaluating.models import DueEvaluation, DueState
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.models import Job

log = logging.getLogger(__name__)
#: How far an evaluation stands behind the training whose checkpoint it measures.
PRIORITY_BELOW = 10
LOWEST_PRIORITY = -100


def queue(session: Session, settings: Settings, *, job_id: str, step: int) -> Evaluation | None:
    """Make an evaluation of a checkpoint that waits for it, once; what stands against it is written down."""
    found = _lock(session, job_id=job_id, step=step)
    if found is None:
        return None
    job, due = found
    order = read_order(job)
    if due.state != DueState.WAITING.value or order is None:
        return None
    request = EvaluationCreate(
        targets=[CheckpointTarget(job=job.id, step=step)],
        benchmarks=order.benchmarks,
        engine=order.engine,
        seed=order.seed,
        priority=max(LOWEST_PRIORITY, job.priority - PRIORITY_BELOW),
    )
    try:
        with session.begin_nested():
            (evaluation,) = create(session, settings, request=request, trigger=TRAINING)
    except DomainError as error:
        log.warning("job %s: the checkpoint of step %d is not measured: %s", job.id, step, error.message)
        give_up(session, settings, job_id=job.id, step=step, problem=error.message)
        return None
    due.state, due.evaluation_id = DueState.QUEUED.value, evaluation.id
    session.add(due)
    session.flush()
    return evaluation


def close(session: Session, settings: Settings, *, job_id: str, step: int) -> bool:
    """Look at an evaluation that is over: take its scores in, or say why there are none.

    Whether the training was told to stop for them.
    """
    found = _lock(session, job_id=job_id, step=step)
    if found is None or found[1].evaluation_id is None:
        return False
    job, due = found
    evaluation = repository.find_evaluation(session, evaluation_id=str(due.evaluation_id))
    if evaluation is None:
        give_up(session, settings, job_id=job_id, step=step, problem="The evaluation was deleted.")
        return False
    if evaluation.results is None:
        carrier = jobs.find_job(session, job_id=evaluation.job_id)
        state = carrier.state.value if carrier else "gone"
        reason = carrier.reason if carrier and carrier.reason else f"The evaluation is {state}."
        give_up(session, settings, job_id=job_id, step=step, problem=reason)
        return False
    results = [BenchmarkResult.model_validate(result) for result in evaluation.results]
    has_stopped = scores.record(session, job=job, due=due, results=results)
    exports.queue_promised(session, job=job, settings=settings)
    return has_stopped


def give_up(session: Session, settings: Settings, *, job_id: str, step: int, problem: str) -> None:
    """Note that a checkpoint has no scores, and why; it is kept for them no longer."""
    found = _lock(session, job_id=job_id, step=step)
    if found is None:
        return
    job, due = found
    scores.close(session, job=job, due=due, state=DueState.FAILED, problem=problem)
    exports.queue_promised(session, job=job, settings=settings)


def _lock(session: Session, *, job_id: str, step: int) -> tuple[Job, DueEvaluation] | None:
    """Return the locked training job and the checkpoint's due evaluation; None if either is missing."""
    job = jobs.lock_job(session, job_id=job_id)
    due = due_rows.find_due(session, job_id=job_id, step=step)
    return (job, due) if job is not None and due is not None else None
