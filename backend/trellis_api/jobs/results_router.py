"""What a job reported: metrics, logs, checkpoints, manifest, and the live stream of it all."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from trellis_api.core import prometheus
from trellis_api.core.dependencies import ReadSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.jobs import results
from trellis_api.jobs.dependencies import JOB_RESPONSES, JobId
from trellis_api.jobs.events.schemas import StreamEvents
from trellis_api.jobs.events.stream import EventHub, stream_events
from trellis_api.jobs.rollouts.pages import MAX_STEP
from trellis_api.jobs.schemas import (
    LogPage,
    ManifestRead,
    MetricKey,
    MetricsRead,
)

router = APIRouter(prefix="/jobs/{job_id}", tags=["results"], responses=JOB_RESPONSES)


class EventStreamResponse(StreamingResponse):
    """Server-sent events, never held back by a proxy's buffer."""

    media_type = "text/event-stream"


@router.get("/metrics", summary="Curves, downsampled with their extremes kept")
def read_metrics(
    job_id: JobId,
    session: ReadSession,
    keys: Annotated[
        list[str] | None, Query(description="Metric keys, repeated or separated by commas; default all.")
    ] = None,
    max_points: Annotated[int, Query(ge=10, le=20_000, description="Maximum points per key.")] = 1000,
    from_step: Annotated[int | None, Query(ge=0, le=MAX_STEP)] = None,
    to_step: Annotated[int | None, Query(ge=0, le=MAX_STEP)] = None,
    clock: Annotated[
        bool, Query(description="With the time and tokens up to the steps, and when they ended.")
    ] = False,
) -> MetricsRead:
    """Return the curves. Long ones keep the minimum and maximum of each bucket, so no spike is lost."""
    names = [name for part in keys for name in part.split(",") if name] if keys else None
    return results.read_metrics(
        session,
        job_id=job_id,
        keys=names,
        max_points=max_points,
        from_step=from_step,
        to_step=to_step,
        with_clock=clock,
    )


@router.get("/metric-keys", summary="Metrics reported by the job")
def list_metric_keys(job_id: JobId, session: ReadSession) -> list[MetricKey]:
    """List the metrics under the engine's own names, with their newest values."""
    return results.list_metric_keys(session, job_id=job_id)


@router.get("/logs", summary="Lines of output")
def read_logs(
    job_id: JobId,
    session: ReadSession,
    after: Annotated[
        int | None, Query(ge=0, le=MAX_STEP, description="Lines after this one; default the last lines.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> LogPage:
    """Return lines of output. Line numbers run through all attempts of a job, from 1."""
    return results.read_logs(session, job_id=job_id, after=after, limit=limit)


@router.get("/manifest", summary="Manifest to reproduce the run")
def read_manifest(
    job_id: JobId, session: ReadSession, attempt: Annotated[int | None, Query(ge=1, le=MAX_STEP)] = None
) -> ManifestRead:
    """Return the resolved configuration, versions, seeds, hashes, commit and command of an attempt.

    Default: the newest attempt.
    """
    return results.read_manifest(session, job_id=job_id, attempt=attempt)


@router.get(
    "/events",
    summary="Follow a job live (server-sent events)",
    response_class=EventStreamResponse,
    responses={
        200: {
            "model": StreamEvents,
            "description": "Events named like the fields; `data` is the field's type.",
        },
        422: ERROR_RESPONSES[422],
    },
)
async def follow_job(
    job_id: JobId,
    request: Request,
    last_event_id: Annotated[str | None, Header(description="Position to continue after.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=MAX_STEP, description="As Last-Event-ID; default from now.")
    ] = None,
) -> EventStreamResponse:
    """Send everything after the given position in order, without gaps, then follow live."""
    hub: EventHub = request.app.state.event_hub
    asked = _read_position(last_event_id) if last_event_id else after
    position = await run_in_threadpool(hub.resolve_position, job_id, asked)
    return EventStreamResponse(
        _count_clients(stream_events(hub, job_id=job_id, position=position)),
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _read_position(last_event_id: str) -> int:
    """Parse the position that a browser sent; an invalid one counts as lost, which leads to a reset."""
    is_number = last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 16
    return int(last_event_id) if is_number else MAX_STEP


async def _count_clients(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with prometheus.SSE_CLIENTS.track_inprogress():
        async for event in events:
            yield event
