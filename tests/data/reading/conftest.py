"""An import of some bytes, and what it made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from trellis_data.reading.importing import ImportReport, import_rows
from trellis_data.reading.sources import LocalSource


class Imported:
    """A destination and its report."""

    def __init__(self, folder: Path, report: ImportReport) -> None:
        self.folder = folder
        self.report = report

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows, in order."""
        return [row for name in self.report.shards for row in pq.read_table(self.folder / name).to_pylist()]

    @property
    def quarantined(self) -> list[dict[str, Any]]:
        """What the quarantine file says."""
        lines = (self.folder / "quarantine.jsonl").read_bytes().splitlines()
        return [orjson.loads(line) for line in lines]


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[bytes, str], Imported]:
    """Imports bytes as a file of that name."""
    count = 0

    def run(content: bytes, filename: str) -> Imported:
        nonlocal count
        count += 1
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / filename).write_bytes(content)
        destination = folder / "out"
        return Imported(destination, import_rows(LocalSource(folder / filename), destination))

    return run
