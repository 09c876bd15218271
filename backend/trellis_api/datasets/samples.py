"""Sample data as datasets: each is imported once, as an uploaded file would be."""

from sqlmodel import Session
from trellis_data.samples.listing import Sample, find_sample, list_samples

from trellis_api.core.database import take_turns
from trellis_api.core.settings import Settings
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import imports, repository
from trellis_api.datasets.errors import SampleUnknown
from trellis_api.datasets.given_rows import write_upload
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.schemas import DatasetOrigin, ImportCreate, SampleDataset, SampleDatasetList
from trellis_api.uploads.storage import StoredUpload

#: PostgreSQL advisory lock under which samples are added.
_LOCK = 7_270_512_037_842


def list_all(session: Session) -> SampleDatasetList:
    """List all samples, each with its dataset if it was added."""
    added = repository.map_samples(session)
    return SampleDatasetList(
        items=[
            SampleDataset(
                name=sample.name,
                title=sample.title,
                description=sample.description,
                format=sample.format,
                dataset_id=added.get(sample.name),
            )
            for sample in list_samples()
        ]
    )


def get_sample(name: str) -> Sample:
    """Return the sample with this name; raises ``SampleUnknown``."""
    sample = find_sample(name)
    if sample is None:
        names = ", ".join(each.name for each in list_samples())
        raise SampleUnknown(f"There is no sample dataset '{name}'. Available: {names}.")
    return sample


def find_added(session: Session, sample: Sample) -> Dataset | None:
    """Return the dataset of a sample, unless its import failed."""
    found = repository.map_samples(session).get(sample.name)
    return repository.find_dataset(session, dataset_id=found) if found is not None else None


def lock(session: Session) -> None:
    """Let one transaction at a time add samples."""
    take_turns(session, key=_LOCK)


def write(settings: Settings, sample: Sample) -> StoredUpload:
    """Write an upload with the rows of a sample."""
    upload = write_upload(settings, sample.make_rows(), filename=f"{sample.name}.jsonl")
    assert upload is not None  # noqa: S101 - no sample is empty
    return upload


def add(
    session: Session, sample: Sample, request: ImportCreate, origin: DatasetOrigin
) -> tuple[Dataset, DataTask]:
    """Create a dataset of the sample for a worker to fill.

    Its name gets a number if another dataset has it.
    """
    named = origin.model_copy(update={"kind": "sample", "name": sample.name})
    return imports.import_new(session, request, named)
