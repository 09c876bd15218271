"""``/models/{id}/lineage`` and ``/datasets/{id}/lineage``."""

from fastapi import APIRouter

from trellis_api.core.dependencies import ReadSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.lineage import datasets, models
from trellis_api.lineage.schemas import DataLineageRead, LineageRead
from trellis_api.models.service import get_model

models_router = APIRouter(prefix="/models", tags=["models"], responses=ERROR_RESPONSES)
datasets_router = APIRouter(prefix="/datasets", tags=["datasets"], responses=ERROR_RESPONSES)


@models_router.get("/{model_id}/lineage", summary="Lineage of a model")
def read_lineage(model_id: str, session: ReadSession) -> LineageRead:
    """Return models, jobs and datasets and how they are connected; deleted ones keep their names."""
    return models.read_lineage(session, model=get_model(session, model_id=model_id))


@datasets_router.get("/{dataset_id}/lineage")
def read_dataset_lineage(dataset_id: str, session: ReadSession) -> DataLineageRead:
    """Return the lineage from the sources to the jobs and models that used the dataset."""
    return datasets.read(session, dataset_id=dataset_id)
