"""Writers that are killed: no half-written version is ever seen, and what they leave is collected."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_data.versions.records import Version
from trellis_data.versions.rows import stream_rows
from trellis_data.versions.store import Store
from trellis_data.versions.upkeep import collect_garbage, verify
from trellis_testing.waiting import wait_until

pytestmark = pytest.mark.faults
Record = Callable[..., Version]

WRITER = """
import sys
from pathlib import Path
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.versions import chunking
from trellis_data.versions.store import Entry, Store
chunking.LEAST_ROWS, chunking._DIVISOR = 50, 50
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
for file in sys.argv[2:]:
    entry = Entry(f"of {file}", "writer", Layout(DataFormat.UNKNOWN))
    store.record({"train": [Path(file)]}, entry, branch="many")
"""


def make_rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"row {i} of many"} for i in range(start, start + count)]


def objects_of(store: Store) -> int:
    return sum(1 for path in (store.root / "objects").rglob("*.*"))


@pytest.mark.parametrize("wait_s", [0.0, 0.05, 0.2])
def test_a_writer_killed_in_the_middle_leaves_the_last_version(
    store: Store, record: Record, tmp_path: Path, wait_s: float
) -> None:
    first = record(make_rows(500), branch="many")
    files = []
    for number in range(5):
        files.append(tmp_path / f"{number}.parquet")
        pq.write_table(pa.Table.from_pylist(make_rows(3000, start=number * 10**6)), files[-1])
    before = objects_of(store)
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.root), *map(str, files)], stdout=subprocess.PIPE
    )
    wait_until(lambda: objects_of(store) > before + 5, 60, "the writer writes")
    time.sleep(wait_s)

    process.send_signal(signal.SIGKILL)
    process.wait(30)
    if process.stdout:
        process.stdout.close()

    history = list(store.history("many"))
    assert history[-1] == first
    assert len(history) < 6
    assert verify(store) == []
    for version in history[:-1]:
        assert sum(table.num_rows for table in stream_rows(store, version, "train")) == 3000
    collect_garbage(store)
    assert verify(store) == []
    assert list((store.root / "unfinished").iterdir()) == []
    record(make_rows(3000), branch="many")
    assert len(list(store.history("many"))) == len(history) + 1
