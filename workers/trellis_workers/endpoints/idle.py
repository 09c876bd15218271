"""Stops endpoints that nobody has used for longer than they may idle: their slots and memory are given back.

The API notes when a request comes, and while one is under way every few seconds; so this needs no count of
requests, and an API that died leaves nothing behind that would keep an endpoint alive.
"""

import logging

from trellis_api.endpoints import repository, service

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write
from trellis_workers.jobs.stop import request_stop

logger = logging.getLogger(__name__)


def stop_idle_endpoints() -> None:
    """Ask each to leave; the reconciler settles it when it is gone."""
    default_s = get_settings().endpoint_idle_s
    with read() as session:
        running = repository.list_running(session)
        ids = [row.id for row, job in running if service.is_idle(row, job, default_s=default_s)]
    for endpoint_id in ids:
        with write() as session:
            # A request may have come between the two looks.
            stopped = service.stop_if_idle(session, endpoint_id=endpoint_id, default_s=default_s)
        if stopped is not None:
            logger.info("stopping idle endpoint %s", endpoint_id)
            request_stop(stopped)
