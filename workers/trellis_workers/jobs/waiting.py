"""Tells what a job waits for that Ray cannot place: its entrypoint, or what its driver asked for.

Ray itself waits without a word, and for ever where the cluster lacks what is asked for.
"""

import logging
import time
from collections.abc import Sequence
from datetime import datetime

from trellis_api.core.columns import utc_now
from trellis_api.core.ray_cluster import RayNode, RayUnreachableError, Waiting, list_nodes, list_waiting
from trellis_api.jobs import repository
from trellis_api.jobs.alarms import repository as alarm_repository
from trellis_api.jobs.alarms import service as alarms
from trellis_api.jobs.alarms.placement import Shortage, find_shortage
from trellis_api.jobs.alarms.platforms import OTHER_PLATFORM
from trellis_api.jobs.models import EVALUATE, EXPORT, SERVE, Attempt, Job
from trellis_contracts.recipe import Engine
from trellis_contracts.states import JobState
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.placement import entrypoint_demand

from trellis_workers.core.ray_client import RayJob, RayStatus
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)

#: Starting takes seconds; on a busy machine, half a minute.
PATIENCE_S = 45.0
#: Between two looks at one job.
_INTERVAL_S = 10.0
_TIMEOUT_S = 5.0


class _Looks:
    """When a worker process last looked at each job."""

    at: dict[str, float] = {}  # noqa: RUF012 - one for the process


def look_for_shortage(job: Job, attempt: Attempt | None, ray_job: RayJob) -> None:
    """Raise the alarm of a job that waits for resources which the cluster has not got, or clear it."""
    is_pending = ray_job.status == RayStatus.PENDING
    since = job.launched_at if is_pending else attempt.started_at if attempt is not None else None
    if job.first_step is not None or not _has_waited(since):
        # It has gone on since the last look, if there was one.
        if not is_pending and _Looks.at.pop(job.id, None) is not None:
            _note(job, None)
        return
    if not _is_due(job):
        return
    try:
        shortage = _find(job, ray_job)
    except RayUnreachableError as error:
        logger.warning("job %s: could not query what it is waiting for: %s", job.id, error)
        return
    _note(job, shortage)


def tell_queued(nodes: Sequence[RayNode]) -> None:
    """Raise the alarm of queued jobs that ask for more GPUs than all nodes have."""
    gpus = sum(node.gpus for node in nodes)
    with read() as session:
        queued = [job for job in repository.list_queued(session) if job.gpus > gpus]
    for job in queued:
        if _has_waited(job.queued_at) and _is_due(job):
            _note(job, find_shortage([Waiting({"GPU": float(job.gpus)}, is_packed=False)], nodes))


def tell_other_platform(platform: str) -> None:
    """Raise the alarm of queued jobs that were composed for another platform; clear it of all others."""
    with read() as session:
        waiting = repository.map_queued_for_other_platform(session, platform=platform)
        told = set(alarm_repository.list_jobs_with(session, code=OTHER_PLATFORM))
    for job_id in waiting.keys() ^ told:
        with write() as session:
            job = repository.lock_job(session, job_id=job_id)
            if job is None or (job_id in waiting and job.state != JobState.QUEUED):
                continue
            composed_for = waiting.get(job_id)
            has_changed = alarms.note_other_platform(
                session, job=job, composed_for=composed_for, present=platform
            )
        if has_changed and composed_for is not None:
            logger.warning("job %s waits: composed for %s, not for %s", job_id, composed_for, platform)


def _note(job: Job, shortage: Shortage | None) -> None:
    with write() as session:
        current = repository.lock_job(session, job_id=job.id)
        if current is None or current.attempt != job.attempt or current.state != job.state:
            return
        has_changed = alarms.note_shortage(session, job=current, shortage=shortage)
    if has_changed and shortage is not None:
        logger.warning("job %s is not placed: %s", job.id, shortage.message)


def _is_due(job: Job) -> bool:
    """Tell whether the job was not checked just now."""
    now = time.monotonic()
    if now - _Looks.at.get(job.id, -_INTERVAL_S) < _INTERVAL_S:
        return False
    _Looks.at[job.id] = now
    return True


def _has_waited(since: datetime | None) -> bool:
    return since is not None and (utc_now() - since).total_seconds() > PATIENCE_S


def _find(job: Job, ray_job: RayJob) -> Shortage | None:
    url = get_settings().ray_dashboard_url
    if url is None:
        return None
    if ray_job.status == RayStatus.PENDING:
        demand = entrypoint_demand(_engine_of(job), job.gpus)
        requests = [Waiting({"CPU": float(demand.cpus), "GPU": float(demand.gpus)})]
    elif ray_job.driver_id is not None:
        requests = list_waiting(url, ray_job.driver_id, timeout_s=_TIMEOUT_S)
    else:
        requests = []
    return find_shortage(requests, list_nodes(url, timeout_s=_TIMEOUT_S)) if requests else None


def _engine_of(job: Job) -> Engine:
    kinds = {EXPORT: Engine.EXPORT, EVALUATE: Engine.EVALUATE, SERVE: Engine.SERVE}
    return kinds.get(job.kind) or get_recipe(job.recipe).engine
