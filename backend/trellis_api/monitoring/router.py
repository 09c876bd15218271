"""``/monitoring/dashboard`` for people, ``/metrics`` for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime
from trellis_contracts.states import JobState

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints import service as endpoints
from trellis_api.endpoints.service import EndpointCounts
from trellis_api.monitoring import activity, history, prometheus, service
from trellis_api.monitoring.dependencies import ProbesDep
from trellis_api.monitoring.schemas import ActivityRead, DashboardRead, MachineHistory, ProcessHistory

router = APIRouter(prefix="/monitoring", tags=["monitoring"], responses={401: ERROR_RESPONSES[401]})
#: At the root and without login, like the health checks: it holds counts and no names.
metrics_router = APIRouter(tags=["health"])

MaxPoints = Annotated[int, Query(ge=10, le=2000, description="Stretches to average over.")]
Since = Annotated[AwareDatetime | None, Query(description="Default: 24 hours before `until`.")]
Until = Annotated[AwareDatetime | None, Query(description="Default: now.")]


@router.get("/dashboard")
def read_dashboard(session: ReadSession, settings: SettingsDep, probes: ProbesDep) -> DashboardRead:
    """Return jobs, queue, slots, failures, and the state of every part of the platform with its age."""
    return service.read_dashboard(session, settings, probes)


@router.get("/activity", summary="Latest results and active alarms")
def read_activity(
    session: ReadSession,
    limit: Annotated[int, Query(ge=1, le=50, description="Maximum number of finished jobs.")] = 6,
) -> ActivityRead:
    """Return finished trainings beside the jobs they are copies of, and active alarms of unfinished jobs."""
    return activity.read_activity(session, limit=limit)


@router.get("/machines", summary="Node metrics over time")
def read_machines(
    session: ReadSession,
    since: Since = None,
    until: Until = None,
    max_points: MaxPoints = 288,
    node: Annotated[str | None, Query(max_length=255, pattern=NO_NUL, description="Only this node.")] = None,
) -> MachineHistory:
    """Return metrics of every node: processors, memory, disks, network and GPUs.

    Measured every ten seconds, kept a week.
    """
    return history.read_history(session, since=since, until=until, max_points=max_points, node=node)


@router.get("/processes", summary="Memory of large processes over time")
def read_processes(
    session: ReadSession,
    since: Since = None,
    until: Until = None,
    max_points: Annotated[int, Query(ge=20, le=2000, description="Maximum samples per process.")] = 480,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of processes.")] = 100,
    job_id: Annotated[
        str | None, Query(pattern=id_pattern("job"), description="Only processes of this job.")
    ] = None,
    is_growing: Annotated[bool | None, Query(description="Only processes that grow, or do not.")] = None,
) -> list[ProcessHistory]:
    """Return the largest processes on the workers' machine, sampled once a minute; growing ones first."""
    return history.read_processes(
        session,
        since=since,
        until=until,
        max_points=max_points,
        limit=limit,
        job_id=job_id,
        is_growing=is_growing,
    )


@metrics_router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Figures"}},
)
def read_metrics(database: DatabaseDep, probes: ProbesDep) -> Response:
    """Return metrics in Prometheus text format."""

    def count_jobs() -> dict[JobState, int]:
        with database.read() as session:
            return service.count_jobs(session)

    def count_alarms() -> dict[tuple[str, str], int]:
        with database.read() as session:
            return service.count_alarms(session)

    def count_endpoints() -> EndpointCounts:
        with database.read() as session:
            return endpoints.count_endpoints(session)

    collector = prometheus.StateCollector(count_jobs, count_alarms, count_endpoints, probes)
    content = prometheus.render(collector)
    return Response(content, media_type="text/plain; version=0.0.4")
