"""Rows of a version: pages by position, and those that fit a search."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from sqlmodel import Session
from trellis_data.reading.column_types import describe_type
from trellis_data.versions.records import StoreProblem, Tree
from trellis_data.versions.store import Store
from trellis_data.versions.version_rows import Search, find_rows, take_rows

from trellis_api.core.errors import DiskFull, means_no_room
from trellis_api.core.settings import Settings
from trellis_api.datasets import service, versions
from trellis_api.datasets.cutting import PageRows
from trellis_api.datasets.errors import DatasetFileMissing, SearchUnfit
from trellis_api.datasets.schemas import ColumnRead, DatasetRows, FoundRows, RowSearch
from trellis_api.datasets.store import open_store

log = logging.getLogger(__name__)
#: Of a page's rows as JSON that are held at a time, by what rows of the split have on average.
_HELD_BYTES = 64 * 2**20
#: What a search says that cannot be done; any other problem of the store is its own.
_SEARCH_PROBLEMS = frozenset({"column_unknown", "condition_unfit", "page_unfit"})


def read_page(
    session: Session,
    settings: Settings,
    *,
    dataset_id: str,
    revision: str | None,
    split: str | None,
    offset: int,
    limit: int,
) -> DatasetRows:
    """Read a page of rows; empty after the last one."""
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=revision)
    name = versions.choose_split(version, split)
    with reading(dataset_id):
        store = open_store(settings)
        tree = store.tree(version.tree)
        count = tree.splits[name].rows
        wanted = range(min(offset, count), min(offset + limit, count))
        page = PageRows(len(wanted)).add(_take(store, tree, name, wanted))
    return DatasetRows(
        version=version.id,
        split=name,
        offset=offset,
        row_count=count,
        columns=describe_columns(tree.arrow_schema),
        rows=page.rows,
        cut=page.cut,
    )


def search(session: Session, settings: Settings, *, dataset_id: str, request: RowSearch) -> FoundRows:
    """Return the next rows that match the search."""
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=request.version)
    name = versions.choose_split(version, request.split)
    wanted = Search(conditions=request.conditions, text=request.text)
    with reading(dataset_id):
        store = open_store(settings)
        found = find_rows(
            store, store.version(version.id), name, wanted, cursor=request.cursor, limit=request.limit
        )
        schema = store.tree(version.tree).arrow_schema
    page = PageRows(found.table.num_rows).add([found.table])
    return FoundRows(
        version=version.id,
        split=name,
        row_count=version.splits[name],
        columns=describe_columns(schema),
        rows=page.rows,
        cut=page.cut,
        positions=found.positions,
        looked_at=found.looked_at,
        next_cursor=found.cursor,
    )


def _take(store: Store, tree: Tree, split: str, wanted: range) -> Iterator[pa.Table]:
    """Yield the rows in tables small enough that each fits into memory, however long rows are."""
    whole = tree.splits[split]
    step = max(1, _HELD_BYTES * whole.rows // max(1, whole.size_bytes))
    for start in wanted[::step]:
        yield take_rows(store, tree, split, np.arange(start, min(start + step, wanted.stop)))


def describe_columns(schema: pa.Schema) -> list[ColumnRead]:
    """Describe the columns with the type names of the dashboard."""
    return [ColumnRead(name=field.name, type=describe_type(field.type)) for field in schema]


@contextmanager
def reading(dataset_id: str) -> Iterator[None]:
    """Translate errors of reading, searching or writing rows into ones that clients see."""
    try:
        yield
    except StoreProblem as error:
        if error.code in _SEARCH_PROBLEMS:
            details = [{"code": error.code, "field": error.field or "conditions", "message": error.message}]
            raise SearchUnfit(error.message, details) from error
        log.error("dataset %s cannot be read: %s", dataset_id, error)
        raise DatasetFileMissing("Some of the dataset's rows are missing or corrupted.") from error
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and means_no_room(error):
            raise DiskFull("The data root's disk is full.") from error
        log.error("dataset %s cannot be read: %s", dataset_id, error)
        raise DatasetFileMissing("Some of the dataset's rows are missing or corrupted.") from error
