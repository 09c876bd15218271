"""Rows as Parquet shards, and operators small enough to be seen through."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_data import catalogue


@pytest.fixture
def small_operators(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The catalogue with those of ``trellis_testing.data_operators``."""
    monkeypatch.setattr(catalogue, "_MODULES", (*catalogue._MODULES, "trellis_testing.data_operators"))
    catalogue.operators.cache_clear()
    yield
    monkeypatch.undo()
    catalogue.operators.cache_clear()


@pytest.fixture
def shards(tmp_path: Path) -> Callable[..., list[Path]]:
    """Writes rows in so many files, each with small row groups."""

    def write(rows: list[dict[str, Any]] | pa.Table, files: int = 3, group: int = 50) -> list[Path]:
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
        folder = tmp_path / "input"
        folder.mkdir(exist_ok=True)
        size = -(-table.num_rows // files) or 1
        paths = []
        for number in range(files):
            path = folder / f"part-{number}.parquet"
            pq.write_table(table.slice(number * size, size), path, row_group_size=group)
            paths.append(path)
        return paths

    return write
