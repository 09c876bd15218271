"""A job over time: its machines, the phases of its steps, and the life of its responses."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from trellis_api.core.dependencies import ReadSession
from trellis_api.core.texts import NO_NUL
from trellis_api.jobs.dependencies import JOB_RESPONSES, JobId
from trellis_api.jobs.rollouts.pages import MAX_STEP
from trellis_api.jobs.timing import service
from trellis_api.jobs.timing.schemas import JobSystemRead, TimelineRead, TimingRead

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
    """Return processors, memory, disks, network and GPUs of the nodes, with times of attempts and steps."""
    return service.read_system(
        session, job_id=job_id, since=since, until=until, max_points=max_points, node=node
    )


@router.get("/timing", summary="Where the time of the steps went")
def read_timing(
    job_id: JobId,
    session: ReadSession,
    max_stretches: Annotated[int, Query(ge=10, le=500, description="Stretches to average over.")] = 120,
) -> TimingRead:
    """Return seconds by phase over all steps, and the phases that limit the run."""
    return service.read_timing(session, job_id=job_id, max_stretches=max_stretches)


@router.get("/timeline", summary="One step span by span")
def read_timeline(
    job_id: JobId,
    session: ReadSession,
    step: Annotated[int | None, Query(ge=0, le=MAX_STEP, description="Default the newest one.")] = None,
) -> TimelineRead | None:
    """Return the spans of the nearest step with spans.

    Up to 200 steps spread over a run have them; null without any.
    """
    return service.read_timeline(session, job_id=job_id, step=step)
