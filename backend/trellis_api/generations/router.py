"""``/generations``: synthetic data from a model."""

from fastapi import APIRouter, BackgroundTasks
from trellis_contracts.tasks import RUN_DATA_TASKS

from trellis_api.core.dependencies import SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.data_tasks.schemas import DataTaskRead
from trellis_api.generations import service
from trellis_api.generations.schemas import GenerationCreate, GenerationEndpointList
from trellis_api.names.resolve import DATASETS, MODELS, find_id

router = APIRouter(prefix="/generations", tags=["generations"], responses=ERROR_RESPONSES)


@router.get("/endpoints")
def list_endpoints(settings: SettingsDep) -> GenerationEndpointList:
    """List the endpoints that may be queried, without their keys."""
    return GenerationEndpointList(items=service.list_endpoints(settings))


@router.post("", status_code=202)
def start_generation(
    request: GenerationCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DataTaskRead:
    """Generate rows; a worker asks the model. The task's result is the report, with what it cost."""
    found = {"dataset": find_id(session, DATASETS, request.dataset, field="dataset")}
    if request.model is not None:
        found["model"] = find_id(session, MODELS, request.model, field="model")
    task = service.start(session, settings, request=request.model_copy(update=found))
    tasks.send_later(background, RUN_DATA_TASKS)
    return task
