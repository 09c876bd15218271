"""Ends what no sweep of idle endpoints sees: engines without an endpoint, and loads that get no answer."""

import logging

from trellis_api.endpoints import repository, service, sharing

from trellis_workers.core.transaction import read, write
from trellis_workers.jobs.stop import request_stop

logger = logging.getLogger(__name__)


def stop_orphans() -> None:
    """Ask engines to leave that no endpoint refers to: nobody can reach them, and they hold memory."""
    with read() as session:
        job_ids = repository.list_orphans(session)
    for job_id in job_ids:
        with write() as session:
            is_stopping = service.stop_orphan(session, job_id=job_id)
        if is_stopping:
            logger.warning("job %s serves for no endpoint, stopping it", job_id)
            request_stop(job_id)


def give_up_lost_loads() -> None:
    """Give adapters engines of their own that a ready engine was asked to load and never spoke of."""
    with read() as session:
        running = repository.list_running(session)
        hosts = {row.id: row for row, _ in running}
        lost = [
            row.id
            for row, job in running
            if row.engine_id in hosts and sharing.is_lost(row, hosts[row.engine_id], job)
        ]
    for endpoint_id in lost:
        with write() as session:
            service.give_up_lost_load(session, endpoint_id=endpoint_id)
