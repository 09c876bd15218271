"""Versions whose names are kept elsewhere, as the platform keeps them in its database."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.versions.differences import compare, find_difference
from trellis_data.versions.records import StoreProblem, Version
from trellis_data.versions.store import Entry, Store
from trellis_data.versions.upkeep import collect_garbage, verify
from trellis_data.versions.version_rows import read_rows

Record = Callable[..., Version]
RowsFile = Callable[[list[dict[str, Any]]], Path]
ENTRY = Entry("loose", "tests", Layout(DataFormat.TEXT, {"text": "text"}))


def make_rows(count: int) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"row {i} of many", "score": i / 7} for i in range(count)]


@pytest.fixture
def rows_file(tmp_path: Path) -> RowsFile:
    """Writes rows as Parquet."""

    def write(rows: list[dict[str, Any]]) -> Path:
        path = tmp_path / f"rows-{len(rows)}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path

    return write


def test_a_version_without_a_name_is_there_until_the_store_is_tidied(
    store: Store, record: Record, rows_file: RowsFile
) -> None:
    named = record(make_rows(5))

    loose = store.add_version({"train": [rows_file(make_rows(8))]}, ENTRY, [named.id])

    assert (loose.commit.parents, loose.commit.rows) == ([named.id], {"train": 8})
    assert store.version(loose.id) == loose
    assert store.version() == named
    collect_garbage(store, keep=lambda: [loose.id])
    assert read_rows(store, loose, "train", 0, 9).to_pylist() == make_rows(8)
    collect_garbage(store)
    with pytest.raises(StoreProblem, match="no version"):
        store.version(loose.id)
    assert verify(store) == []


def test_the_rows_of_the_only_parent_make_no_version(
    store: Store, record: Record, rows_file: RowsFile
) -> None:
    first, second = record(make_rows(5)), record(make_rows(6))
    files = {"train": [rows_file(make_rows(6))]}

    assert store.add_version(files, ENTRY, [second.id]) == second
    assert store.add_again(second, ENTRY, [second.id]) == second
    back = store.add_again(first, ENTRY, [second.id])
    assert (back.commit.tree, back.commit.parents) == (first.commit.tree, [second.id])
    merged = store.add_version(files, ENTRY, [first.id, second.id])
    assert merged.commit.parents == [first.id, second.id]


def test_nothing_is_tidied_while_somebody_writes(store: Store, rows_file: RowsFile) -> None:
    asked: list[str] = []
    with store.writing():
        made = store.add_version({"train": [rows_file(make_rows(3))]}, ENTRY)
        with pytest.raises(StoreProblem) as problem:
            collect_garbage(store, keep=lambda: asked, wait_s=0.1)
        # Named while still writing: whoever tidies is told only then what to keep.
        asked.append(made.id)
    assert problem.value.code == "store_busy"

    collect_garbage(store, keep=lambda: asked)

    assert store.version(made.id) == made


def test_many_add_versions_to_one_store_at_once(store: Store, rows_file: RowsFile) -> None:
    files = [rows_file(make_rows(50 + number)) for number in range(8)]
    made: list[Version] = []
    threads = [
        threading.Thread(target=lambda path=path: made.append(store.add_version({"train": [path]}, ENTRY)))
        for path in files
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    collect_garbage(store, keep=lambda: [version.id for version in made])

    assert sorted(version.commit.rows["train"] for version in made) == list(range(50, 58))
    for version in made:
        assert len(read_rows(store, version, "train", 0, 100)) == version.commit.rows["train"]


def test_comparisons_go_with_their_versions(store: Store, record: Record) -> None:
    first, second = record(make_rows(5)), record(make_rows(6))
    compare(store, first, second)
    folders = store.root / "differences"
    stale = folders / "killed"
    stale.mkdir()

    collect_garbage(store)
    assert find_difference(store, first, second) is not None
    assert not stale.exists()
    store.branch("other", first.id)
    store.remove("branches", "main")
    collect_garbage(store)

    assert not list(folders.iterdir())
    assert find_difference(store, first, first) is None
