"""Queues the evaluations that trainings have asked for, and takes in the scores of those that are over.

Each in a transaction of its own, which looks again under the training's lock: however many workers
sweep, and whatever dies, a checkpoint is measured once and its scores are recorded once. The chain of
it is told in ``trellis_api/evaluations/training.py``.
"""

import logging
from collections.abc import Callable, Sequence

from sqlalchemy.exc import OperationalError
from trellis_api.evaluations import training
from trellis_api.jobs.evaluating import repository
from trellis_api.jobs.tried_ahead import try_templates_of

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write
from trellis_workers.jobs.stop import request_stop

logger = logging.getLogger(__name__)
#: In one sweep; the next comes in seconds.
_MOST = 200
_UNEXPECTED = "The evaluation could not be {}; see the workers' log for the reason."


def queue_due() -> bool:
    """Record scores before queueing evaluations, as they may end trainings; returns if there is work."""
    with read() as session:
        over = repository.list_over(session, limit=_MOST)
        waiting = repository.list_waiting(session, limit=_MOST)
    _each(over, _close, _UNEXPECTED.format("recorded"))
    _each(waiting, _queue, _UNEXPECTED.format("queued"))
    return bool(over or waiting)


def _close(job_id: str, step: int) -> None:
    with write() as session:
        has_stopped = training.close(session, get_settings(), job_id=job_id, step=step)
    if has_stopped:
        logger.info("job %s: stopped early by the score of the step-%d checkpoint", job_id, step)
        request_stop(job_id)


def _queue(job_id: str, step: int) -> None:
    try_templates_of(read, get_settings(), job_id)
    with write() as session:
        evaluation = training.queue(session, get_settings(), job_id=job_id, step=step)
    if evaluation is not None:
        logger.info("job %s: the step-%d checkpoint is evaluated by %s", job_id, step, evaluation.id)


def _each(found: Sequence[tuple[str, int]], act: Callable[[str, int], None], problem: str) -> None:
    for job_id, step in found:
        try:
            act(job_id, step)
        except OperationalError as error:
            logger.warning("job %s: the database is unreachable, retrying: %s", job_id, error)
            return
        except Exception:  # the edge of the process: one checkpoint must not hold up the others
            logger.exception("job %s: the step-%d checkpoint was not evaluated", job_id, step)
            with write() as session:
                training.give_up(session, get_settings(), job_id=job_id, step=step, problem=problem)
