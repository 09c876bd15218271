"""A job over time: its machines, the phases of its steps, and the life of its responses."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from trellis_api.core.dependencies import ReadSession
from trellis_api.core.texts import NO_NUL
from trellis_api.jobs.dependencies import JOB_RESPONSES, JobId
from trellis_api.jobs.timing import service
from trellis_api.jobs.timing.schemas import JobSystemRead

router = APIRouter(prefix="/jobs/{job_id}", tags=["results"], responses=JOB_RESPONSES)


@router.get("/system", summary="What the machines measured while a job ran")
def read_system(
    job_id: JobId,
    session: ReadSession,
    since: Annotated[AwareDatetime | None, Query(description="Default: the start of the run.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Default: its end, or now.")] = None,
    max_points: Annotated[int, Query(ge=10, le=2000, description="Stretches to average over.")] = 500,
    node: Annotated[
        str | None, Query(max_length=255, pattern=NO_NUL, description="Of this node alone.")
    ] = None,
) -> JobSystemRead:
    """Processors, memory, disks, network and GPUs of the nodes, with the times of attempts and steps."""
    return service.read_system(
        session, job_id=job_id, since=since, until=until, max_points=max_points, node=node
    )
