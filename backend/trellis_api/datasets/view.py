"""The rows that a job or dry run reads: one split of one version, as files."""

from dataclasses import dataclass, field
from pathlib import Path

from sqlmodel import Session
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import DataSource
from trellis_data.reading.column_types import describe_type
from trellis_data.versions.objects import ROWS
from trellis_data.versions.records import StoreProblem

from trellis_api.core.settings import Settings
from trellis_api.datasets import repository, versions
from trellis_api.datasets.errors import DatasetFileMissing, DatasetNotFound
from trellis_api.datasets.store import open_store


@dataclass(frozen=True)
class DatasetView:
    """A split of a version, with what a recipe has to know of it."""

    id: str
    name: str
    version: str
    split: str
    format: DataFormat
    format_columns: dict[str, str]
    #: Name and type of each column, in the dashboard's words.
    columns: list[dict[str, str]]
    row_count: int
    #: Of the version's tree: the same rows, the same hash.
    sha256: str
    #: Parquet files in the order of the rows; columns may be in another order in each.
    paths: list[Path] = field(repr=False)

    def as_source(self, data_format: DataFormat, columns: dict[str, str]) -> DataSource:
        """Describe the rows for a training process, to be read as this format."""
        return DataSource(
            dataset_id=self.id,
            version=self.version,
            split=self.split,
            paths=[str(path) for path in self.paths],
            format=data_format,
            columns=columns,
            sha256=self.sha256,
            row_count=self.row_count,
        )


def view(
    session: Session,
    settings: Settings,
    *,
    dataset_id: str,
    revision: str | None = None,
    split: str | None = None,
) -> DatasetView:
    """Return the rows of a split; 404 or 409 if the dataset, the version or the split is not there."""
    dataset = repository.find_dataset(session, dataset_id=dataset_id)
    if dataset is None:
        raise DatasetNotFound(f"Dataset '{dataset_id}' not found.")
    version = versions.resolve(session, dataset_id=dataset_id, revision=revision)
    name = versions.choose_split(version, split)
    store = open_store(settings)
    try:
        tree = store.tree(version.tree)
    except StoreProblem as error:
        raise DatasetFileMissing("Some of the dataset's rows are missing or corrupted.") from error
    chosen = tree.splits[name]
    return DatasetView(
        id=dataset.id,
        name=dataset.name,
        version=version.id,
        split=name,
        format=tree.format,
        format_columns=tree.roles,
        columns=[{"name": each.name, "type": describe_type(each.type)} for each in tree.arrow_schema],
        row_count=chosen.rows,
        sha256=version.tree,
        paths=[store.objects.path(chunk.id, ROWS) for chunk in chosen.chunks],
    )
