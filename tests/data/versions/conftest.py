"""Stores with rows in them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.versions.records import Version
from trellis_data.versions.store import Entry, Store

TEXT = Layout(DataFormat.TEXT, {"text": "text"})
Record = Callable[..., Version]


def make_rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"row {i} of many", "score": i / 7} for i in range(start, start + count)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "store")


@pytest.fixture
def record(store: Store, tmp_path: Path) -> Record:
    """Records rows (of one split, or of several by name) as the next version."""

    def write(rows: Any, message: str = "rows", **options: Any) -> Version:
        splits = rows if isinstance(rows, dict) else {"train": rows}
        files: dict[str, Iterable[Path]] = {}
        for number, (name, each) in enumerate(splits.items()):
            path = tmp_path / f"recorded-{number}.parquet"
            pq.write_table(each if isinstance(each, pa.Table) else pa.Table.from_pylist(each), path)
            files[name] = [path]
        return store.record(files, Entry(message, "tester", TEXT, **options.pop("entry", {})), **options)

    return write
