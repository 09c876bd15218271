"""Begins fine-tuning jobs whose files have been read: beat calls it every other second.

Each in a transaction of its own, under its row's lock, so that however many workers look, a job begins once.
"""

import logging

from trellis_api.core.errors import DomainError
from trellis_api.fine_tuning import repository, service
from trellis_api.jobs.tried_ahead import try_templates_of

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)


def advance_fine_tuning() -> bool:
    """Begin those that can; whether there is something to launch."""
    with read() as session:
        waiting = repository.list_waiting(session)
    has_begun = False
    for job_id in waiting:
        try:
            has_begun |= _advance(job_id)
        except Exception:  # the edge of the process: one job must not hold up the others
            logger.exception("fine-tuning job %s could not be started", job_id)
    return has_begun


def _advance(job_id: str) -> bool:
    with read() as session:
        found = repository.find_job(session, job_id=job_id)
    if found is not None:
        try_templates_of(read, get_settings(), [found.model_id, found.request])
    with write() as session:
        row = repository.lock_job(session, job_id=job_id)
        is_wanted = row is not None and row.job_id is None and row.finished_at is None and not row.paused_at
        if row is None or not is_wanted:
            return False
        try:
            with session.begin_nested():
                return service.begin(session, get_settings(), row)
        except DomainError as error:
            if error.status >= 500:
                logger.warning("fine-tuning job %s waits: %s", job_id, error.message)
                return False
            session.refresh(row)
            service.give_up(session, row, error)
            logger.info("fine-tuning job %s failed: %s", job_id, error.message)
            return False
