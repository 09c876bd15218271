"""Writers that are killed: no half-written version is ever seen, and what they leave is collected."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_data.versions.records import Version
from trellis_data.versions.store import Store
from trellis_data.versions.upkeep import collect_garbage, verify
from trellis_data.versions.version_rows import stream_rows
from trellis_testing.waiting import wait_until

pytestmark = pytest.mark.faults
Record = Callable[..., Version]

# It never comes to an end by itself: however fast the machine, it is killed in the middle.
WRITER = """
import itertools, sys
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.versions import chunking
from trellis_data.versions.store import Entry, Store
chunking.LEAST_ROWS, chunking._DIVISOR = 50, 50
store, file = Store(Path(sys.argv[1])), Path(sys.argv[2])
for number in itertools.count():
    rows = [{"id": i, "text": f"row {i} of version {number}"} for i in range(3000)]
    pq.write_table(pa.Table.from_pylist(rows), file)
    entry = Entry(f"number {number}", "writer", Layout(DataFormat.UNKNOWN))
    store.record({"train": [file]}, entry, branch="many")
"""


def make_rows(count: int) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"row {i} of many"} for i in range(count)]


def objects_of(store: Store) -> int:
    return sum(1 for path in (store.root / "objects").rglob("*.*"))


@pytest.mark.parametrize("wait_s", [0.0, 0.05, 0.2])
def test_a_writer_killed_in_the_middle_leaves_the_last_version(
    store: Store, record: Record, tmp_path: Path, wait_s: float
) -> None:
    first = record(make_rows(500), branch="many")
    before = objects_of(store)
    command = [sys.executable, "-c", WRITER, str(store.root), str(tmp_path / "rows.parquet")]
    with subprocess.Popen(command) as process:
        try:
            wait_until(lambda: objects_of(store) > before + 5, 60, "the writer writes")
            time.sleep(wait_s)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL

    history = list(store.history("many"))
    assert history[-1] == first
    assert verify(store) == []
    for version in history[:-1]:
        assert sum(table.num_rows for table in stream_rows(store, version, "train")) == 3000
    collect_garbage(store)
    assert verify(store) == []
    assert list((store.root / "unfinished").iterdir()) == []
    record(make_rows(3000), branch="many")
    assert len(list(store.history("many"))) == len(history) + 1
