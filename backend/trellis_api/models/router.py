"""``/models``: register, list and remove."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts.tasks import FETCH_MODEL

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.texts import QueryText
from trellis_api.models import service
from trellis_api.models.catalogue import Catalogue, list_entries
from trellis_api.models.schemas import ModelCreate, ModelRead, ModelState

router = APIRouter(prefix="/models", tags=["models"], responses=ERROR_RESPONSES)


@router.get("")
def list_models(
    session: ReadSession,
    text: Annotated[QueryText | None, Query(description="Part of a name or description.")] = None,
    state: ModelState | None = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[ModelRead]:
    """List models, newest first."""
    return service.list_page(session, text=text, state=state, cursor=cursor, limit=limit)


@router.post("", status_code=201)
def create_model(
    request: ModelCreate,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> ModelRead:
    """Register a model: by its name in the catalogue, a hub repository, a local folder or a checkpoint.

    A worker fetches what is not here yet, and converts GGUF files to safetensors.
    """
    with database.read() as session:
        origin = service.check(session, settings, request)
    prepared = service.prepare(settings, request, origin)
    with database.write() as session:
        model = ModelRead.model_validate(service.add(session, settings, request, prepared))
    if model.state is ModelState.PENDING:
        tasks.send_later(background, FETCH_MODEL, model.id)
    return model


@router.get("/catalogue")
def read_catalogue() -> Catalogue:
    """List models that can be downloaded by name: ``POST /models`` with a source of kind ``catalogue``."""
    return Catalogue(items=list(list_entries()))


@router.get("/{model_id}")
def read_model(model_id: str, session: ReadSession) -> ModelRead:
    """Return one model."""
    return ModelRead.model_validate(service.get_model(session, model_id=model_id))


@router.post("/{model_id}/cancel")
def cancel_model(model_id: str, session: WriteSession) -> ModelRead:
    """Cancel a model's download or conversion: `failed` with the cause `cancelled`.

    What was downloaded is kept, and a retry continues from there; only the unfinished download of a Python
    package begins anew.
    """
    return ModelRead.model_validate(service.cancel_fetch(session, model_id=model_id))


@router.post("/{model_id}/retry")
def retry_model(
    model_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> ModelRead:
    """Retry a failed or cancelled download or conversion of a model."""
    model = service.retry_fetch(session, model_id=model_id)
    tasks.send_later(background, FETCH_MODEL, model.id)
    return ModelRead.model_validate(model)


@router.delete("/{model_id}", status_code=204)
def delete_model(model_id: str, session: WriteSession, settings: SettingsDep) -> None:
    """Remove a model; a local folder or GGUF file stays, fetched and converted files go.

    Refused while a job uses it.
    """
    service.delete(session, settings, model_id=model_id)
