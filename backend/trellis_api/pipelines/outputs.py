"""Where the rows of a run or of a generation go."""

from typing import Literal

from sqlmodel import Session
from trellis_contracts.data_tasks import DatasetOutput, NoOutput, RunOutput, VersionOutput

from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import repository as datasets
from trellis_api.datasets import service as datasets_service
from trellis_api.datasets import versions
from trellis_api.datasets.errors import DatasetNotFound, RefNameTaken
from trellis_api.datasets.models import Dataset, DatasetVersion
from trellis_api.datasets.schemas import DatasetOrigin
from trellis_api.datasets.version_repository import find_ref
from trellis_api.pipelines.schemas import OutputRequest, ToDataset, ToVersion

#: How a dataset that is made of another's rows came about.
MadeBy = Literal["pipeline", "generation"]


def hold_dataset(session: Session, *, dataset_id: str) -> Dataset:
    """Return the dataset to read, protected from deletion until the transaction ends; 404 without one."""
    found = datasets.lock_dataset(session, dataset_id=dataset_id, is_shared=True)
    if found is None:
        raise DatasetNotFound(f"Dataset '{dataset_id}' not found.")
    return found


def make_output(
    session: Session, request: OutputRequest, *, source: Dataset, version: DatasetVersion, made_by: MadeBy
) -> tuple[RunOutput, Dataset | None]:
    """Build the output of a task as requested; a new dataset is created at once, empty."""
    if isinstance(request, ToVersion):
        ref = find_ref(session, dataset_id=source.id, name=request.branch)
        if ref is not None and ref.kind != versions.BRANCH:
            raise RefNameTaken(f"'{request.branch}' is a tag. Choose a branch.")
        return VersionOutput(branch=request.branch, message=request.message), None
    if not isinstance(request, ToDataset):
        return NoOutput(), None
    origin = DatasetOrigin(kind=made_by, name=source.name, dataset=source.id, version=version.id)
    made = datasets_service.add_creating(
        session, name=request.name, description=request.description, source=origin
    )
    return DatasetOutput(dataset_id=made.id), made


def connect(session: Session, made: Dataset | None, task: DataTask) -> None:
    """Let a dataset to be name the task that makes it."""
    if made is not None:
        made.task_id = task.id
        session.add(made)
        session.flush()
