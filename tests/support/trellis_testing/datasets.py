"""Datasets with rows, without the workers that import them: the store and the tables as they leave them."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlmodel import Session
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets import versions
from trellis_api.datasets.models import Dataset, DatasetVersion
from trellis_api.datasets.store import open_store
from trellis_contracts.recipe import DataFormat
from trellis_data.formats.detection import detect
from trellis_data.layout import Layout
from trellis_data.versions.records import Provenance
from trellis_data.versions.store import Entry

Rows = Sequence[Mapping[str, Any]]


def add_dataset(
    session: Session, settings: Settings, rows: Rows | Mapping[str, Rows] | None = None, **changes: Any
) -> Dataset:
    """Add a dataset with one version: rows of ``train``, or of each split; sums if none are given."""
    dataset_id = new_id("ds")
    source = {"kind": "upload", "name": "rows.jsonl", "size_bytes": 1, "sha256": "0" * 64}
    dataset = Dataset(**{"id": dataset_id, "name": f"dataset {dataset_id}", "source": source, **changes})
    session.add(dataset)
    session.flush()
    add_version(session, settings, dataset.id, sums(512) if rows is None else rows)
    return dataset


def add_version(
    session: Session,
    settings: Settings,
    dataset_id: str,
    rows: Rows | Mapping[str, Rows],
    *,
    branch: str = "main",
    message: str = "Import rows.jsonl",
    layout: Layout | None = None,
    **changes: Any,
) -> DatasetVersion:
    """Add the next version of a branch, with these rows."""
    store, splits = open_store(settings), rows if isinstance(rows, Mapping) else {"train": rows}
    tip = versions.find_tip(session, dataset_id=dataset_id, branch=branch)
    with tempfile.TemporaryDirectory() as folder, store.writing():
        files = {name: [_write(Path(folder) / f"{name}.parquet", each)] for name, each in splits.items()}
        first = pq.read_table(next(iter(files.values()))[0])
        layout, reason = (layout, "as stated") if layout else _recognise(first)
        provenance = Provenance(notes={"format_reason": reason, "warnings": []})
        entry = Entry(message, "tests", layout, provenance, changes.pop("statistics", None))
        version = store.add_version(files, entry, [tip] if tip else [])
        values = {"expected": tip, "origin": "import", **changes}
        return versions.publish(
            session, settings, dataset_id=dataset_id, branch=branch, version=version, **values
        )


def sums(count: int, first: int = 0) -> list[dict[str, str]]:
    """Make rows of questions and answers."""
    numbers = range(first, first + count)
    return [{"question": f"What is {n} + 1?", "answer": f"#### {n + 1}"} for n in numbers]


def _write(path: Path, rows: Rows) -> Path:
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def _recognise(table: pa.Table) -> tuple[Layout, str]:
    found = detect(table)
    if not found:
        return Layout(DataFormat.UNKNOWN), "nothing fits"
    return Layout(found[0].format, found[0].columns), " ".join(found[0].reasons)
