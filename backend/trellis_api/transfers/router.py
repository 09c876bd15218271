"""``/transfers``: pushes of models to a hub and exports to GGUF, with progress, cancel and resume."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Path, Query
from fastapi.responses import FileResponse
from trellis_contracts.tasks import RUN_TRANSFERS

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody
from trellis_api.core.ids import id_pattern
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.texts import QueryText
from trellis_api.datasets.download import disposition
from trellis_api.names.resolve import MODELS, find_filter_id
from trellis_api.transfers import repository, service
from trellis_api.transfers.schemas import GgufCreate, PushCreate, TransferRead

CONFLICT: dict[int | str, dict[str, Any]] = {404: ERROR_RESPONSES[404], 409: ERROR_RESPONSES[409]}
RANGES: dict[int | str, dict[str, Any]] = {
    206: {"description": "The requested range"},
    416: {"model": ErrorBody, "description": "The range starts after the end"},
}
router = APIRouter(tags=["transfers"], responses=ERROR_RESPONSES)
ModelId = Annotated[str, Path(description="ID or name of the model.")]
TransferId = Annotated[str, Path(description="Transfer ID.", pattern=id_pattern(repository.PREFIX))]


@router.post("/models/{model_id}/push", status_code=201, summary="Push a model to a hub", responses=CONFLICT)
def push_model(
    model_id: ModelId,
    body: PushCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> TransferRead:
    """Queue a push of all files and the model card as one commit, with the token set on the workers."""
    transfer = service.begin_push(session, settings, model_id=model_id, request=body)
    tasks.send_later(background, RUN_TRANSFERS)
    return service.present(settings, transfer)


@router.post("/models/{model_id}/gguf", status_code=201, summary="Export a model to GGUF", responses=CONFLICT)
def export_gguf(
    model_id: ModelId,
    body: GgufCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> TransferRead:
    """Queue an export to a single file, for llama.cpp and tools based on it."""
    transfer = service.begin_gguf(session, settings, model_id=model_id, request=body)
    tasks.send_later(background, RUN_TRANSFERS)
    return service.present(settings, transfer)


@router.get("/transfers", summary="List transfers")
def list_transfers(
    session: ReadSession,
    settings: SettingsDep,
    model: Annotated[QueryText | None, Query(description="Of this model, by ID or name.")] = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[TransferRead]:
    """List transfers, newest first."""
    model_id = find_filter_id(session, MODELS, model, field="model")
    return service.list_page(session, settings, model_id=model_id, cursor=cursor, limit=limit)


@router.get("/transfers/{transfer_id}", summary="Get a transfer")
def read_transfer(transfer_id: TransferId, session: ReadSession, settings: SettingsDep) -> TransferRead:
    """Get its progress and result."""
    return service.present(settings, service.get_transfer(session, transfer_id=transfer_id))


@router.post("/transfers/{transfer_id}/cancel", summary="Cancel a transfer", responses=CONFLICT)
def cancel_transfer(transfer_id: TransferId, session: WriteSession, settings: SettingsDep) -> TransferRead:
    """Cancel it; nothing is committed to the hub."""
    return service.present(settings, service.cancel(session, transfer_id=transfer_id))


@router.post("/transfers/{transfer_id}/resume", summary="Resume a transfer", responses=CONFLICT)
def resume_transfer(
    transfer_id: TransferId,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> TransferRead:
    """Resume a failed or cancelled transfer. Files already on the Hub are not sent again."""
    transfer = service.resume(session, transfer_id=transfer_id)
    tasks.send_later(background, RUN_TRANSFERS)
    return service.present(settings, transfer)


@router.delete("/transfers/{transfer_id}", status_code=204, summary="Delete a transfer", responses=CONFLICT)
def delete_transfer(transfer_id: TransferId, session: WriteSession, settings: SettingsDep) -> None:
    """Delete a transfer and its exported file; pushed files stay on the Hub."""
    service.delete(session, settings, transfer_id=transfer_id)


@router.get(
    "/transfers/{transfer_id}/file",
    summary="Download an exported file",
    response_class=FileResponse,
    responses={**CONFLICT, **RANGES},
)
def download_transfer_file(
    transfer_id: TransferId, session: ReadSession, settings: SettingsDep
) -> FileResponse:
    """Download the file. Supports byte ranges, so interrupted downloads can resume."""
    path = service.file_of(settings, service.get_transfer(session, transfer_id=transfer_id))
    headers = {"Content-Disposition": disposition(path.name)}
    return FileResponse(path, media_type="application/octet-stream", headers=headers)
