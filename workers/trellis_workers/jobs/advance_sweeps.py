"""Takes sweeps further: beat calls it every other second, and requests nudge it.

Each step in a transaction of its own, which looks again under the sweep's lock. Nothing is kept outside the
database, so a worker may die anywhere: the next look goes on from the rows.
"""

import logging

from sqlalchemy.exc import OperationalError
from trellis_api.jobs.tried_ahead import try_templates_of
from trellis_api.sweeps import repository
from trellis_api.sweeps.advance import Look, advance_in, give_up

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)
_UNEXPECTED = "A run could not be started or finished; see the workers' log for the reason."


def advance_sweeps() -> Look:
    """Advance every active sweep by one step; returns whether to launch something, and what to stop."""
    with read() as session:
        unsettled = repository.list_unsettled(session)
    found = Look()
    for sweep_id in unsettled:
        try:
            one = _advance(sweep_id)
            found.has_queued |= one.has_queued
            found.stopping += one.stopping
        except OperationalError as error:
            logger.warning("sweep %s: the database is unreachable, retrying: %s", sweep_id, error)
            return found
        except Exception:  # the edge of the process: one sweep must not hold up the others
            logger.exception("sweep %s could not be advanced", sweep_id)
            with write() as session:
                found.stopping += give_up(session, sweep_id=sweep_id, problem=_UNEXPECTED)
    return found


def _advance(sweep_id: str) -> Look:
    with read() as session:
        sweep = repository.find_sweep(session, sweep_id=sweep_id)
    if sweep is not None and sweep.is_active:
        try_templates_of(read, get_settings(), sweep.document)
    return advance_in(write, get_settings(), sweep_id=sweep_id)
