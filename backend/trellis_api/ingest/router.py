"""The endpoints that running jobs report to."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Depends
from trellis_contracts import tasks as task_names
from trellis_contracts.events import (
    CheckpointEvent,
    Heartbeat,
    HeartbeatReply,
    IngestBatch,
    IngestReceipt,
    MetricsEvent,
    OutcomeEvent,
)

from trellis_api.core import prometheus
from trellis_api.core.dependencies import SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody
from trellis_api.ingest import service
from trellis_api.ingest.body import read_batch_body
from trellis_api.ingest.dependencies import JobToken, RunningJobId

router = APIRouter(
    prefix="/ingest/jobs/{job_id}",
    tags=["ingest"],
    responses={401: ERROR_RESPONSES[401], 409: ERROR_RESPONSES[409]},
)
_BATCH_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/IngestBatch"}}},
    }
}


@router.post(
    "/batches",
    summary="Report events of a run (job token; gzip welcome)",
    openapi_extra=_BATCH_BODY,
    responses={413: {"model": ErrorBody, "description": "Larger than the limit"}, 422: ERROR_RESPONSES[422]},
)
def ingest_batch(
    job_id: RunningJobId,
    token: JobToken,
    batch: Annotated[IngestBatch, Depends(read_batch_body)],
    background: BackgroundTasks,
    session: WriteSession,
    tasks: TasksDep,
) -> IngestReceipt:
    """Record a batch.

    Batches count 1, 2, 3 ... within an attempt; a repeated one is ignored, a gap is a 409.
    """
    receipt = service.ingest_authorised(session, job_id=job_id, token=token, batch=batch)
    prometheus.INGEST_BATCHES.labels(outcome="accepted" if receipt.accepted else "repeated").inc()
    if receipt.accepted:
        prometheus.INGEST_POINTS.inc(count_points(batch))
    if receipt.accepted and any(isinstance(event, OutcomeEvent) for event in batch.events):
        tasks.send_later(background, task_names.RECONCILE)
    if receipt.accepted and any(isinstance(event, CheckpointEvent) for event in batch.events):
        tasks.send_later(background, task_names.PRUNE)
    return receipt


def count_points(batch: IngestBatch) -> int:
    """Count the metric points in a batch."""
    return sum(len(event.values) for event in batch.events if isinstance(event, MetricsEvent))


@router.post("/heartbeat", summary="Heartbeat of a run (job token)")
def heartbeat(
    job_id: RunningJobId, token: JobToken, body: Heartbeat, session: WriteSession, settings: SettingsDep
) -> HeartbeatReply:
    """Record a heartbeat of a run. The response says whether the run should stop."""
    return service.record_heartbeat(
        session, data_root=settings.data_root, job_id=job_id, token=token, heartbeat=body
    )
