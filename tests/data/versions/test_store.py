"""Versions of rows: what is shared, what is found again, what cannot happen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_data.versions import chunking
from trellis_data.versions.checkout import check_out
from trellis_data.versions.chunking import cut_chunks
from trellis_data.versions.records import Provenance, SourceFile, StoreProblem, Version
from trellis_data.versions.store import Store
from trellis_data.versions.upkeep import collect_garbage, verify
from trellis_data.versions.version_rows import read_rows, stream_rows

Record = Callable[..., Version]


def make_rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"row {i} of many", "score": i / 7} for i in range(start, start + count)]


def chunk_files(store: Store) -> set[str]:
    return {path.name for path in (store.root / "objects").rglob("*.parquet")}


def rows_of(store: Store, version: Version, split: str = "train") -> list[dict[str, Any]]:
    return [row for table in stream_rows(store, version, split) for row in table.to_pylist()]


def test_what_is_recorded_is_read_back(store: Store, record: Record) -> None:
    rows = make_rows(3000)

    version = record({"train": rows, "test": rows[:7]}, "first", entry={"provenance": Provenance(
        files=[SourceFile(name="a.jsonl", sha256="0" * 64, size_bytes=5)])})  # fmt: skip

    assert rows_of(store, version) == rows
    assert rows_of(store, version, "test") == rows[:7]
    assert (version.commit.rows, version.commit.parents) == ({"train": 3000, "test": 7}, [])
    again = store.version()
    assert again == version
    assert again.commit.provenance.files[0].name == "a.jsonl"
    assert store.tree(again.commit.tree).layout.columns == {"text": "text"}


def test_identical_content_is_stored_once(store: Store, record: Record) -> None:
    rows = make_rows(30_000)
    record({"train": rows, "copy": rows})
    once = chunk_files(store)

    other = pa.Table.from_pylist(rows).select(["score", "text", "id"])
    version = record({"again": other}, branch="other")

    assert chunk_files(store) == once
    assert 2 <= len(once) <= 30
    assert read_rows(store, version, "again", 0, 1).column_names == ["score", "text", "id"]
    assert len(store.tree(version.commit.tree).splits["again"].chunks) == len(once)


@pytest.mark.parametrize("change", ["append", "insert", "edit", "remove"])
def test_a_small_change_shares_all_other_chunks(store: Store, record: Record, change: str) -> None:
    rows = make_rows(120_000)
    record(rows)
    before = chunk_files(store)

    changed = {
        "append": rows + make_rows(50, start=10**6),
        "insert": rows[:60_000] + make_rows(1, start=10**6) + rows[60_000:],
        "edit": [*rows[:60_000], {**rows[60_000], "text": "edited"}, *rows[60_001:]],
        "remove": rows[:60_000] + rows[60_001:],
    }[change]
    version = record(changed, branch="other")

    assert len(before) >= 6
    assert 1 <= len(chunk_files(store) - before) <= 3
    assert rows_of(store, version) == changed


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=60), st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_chunks_are_cut_by_content_however_the_rows_arrive(values: list[int], sizes: list[int]) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr(chunking, "LEAST_ROWS", 3)
    patch.setattr(chunking, "MOST_ROWS", 9)
    patch.setattr(chunking, "_DIVISOR", 4)
    patch.setattr(chunking, "MOST_BYTES", 60)
    table = pa.table({"a": pa.array(values, pa.int64())})
    pieces, at = [], 0
    for size in sizes * 60:
        pieces.append(table.slice(at, size))
        at += size

    whole = [chunk.table["a"].to_pylist() for chunk in cut_chunks([table])]
    in_pieces = [chunk.table["a"].to_pylist() for chunk in cut_chunks(pieces)]
    patch.undo()

    assert whole == in_pieces
    assert [value for chunk in whole for value in chunk] == values
    assert all(len(chunk) <= 9 for chunk in whole)


def test_large_rows_make_small_chunks(store: Store, record: Record) -> None:
    rows = [{"text": chr(65 + i) * 6_000_000} for i in range(5)]

    version = record(rows)

    assert [chunk.rows for chunk in store.tree(version.commit.tree).splits["train"].chunks] == [3, 2]


def test_the_history_leads_back_and_names_stay(store: Store, record: Record) -> None:
    first, second = record(make_rows(5), "one"), record(make_rows(6), "two")
    store.tag("v1", first.id[:10])
    store.branch("side", "v1")
    side = record(make_rows(7), "three", branch="side")

    assert [each.commit.message for each in store.history()] == ["two", "one"]
    assert [each.commit.message for each in store.history("side")] == ["three", "one"]
    assert store.version("v1") == first
    assert side.commit.parents == second.commit.parents == [first.id]
    with pytest.raises(StoreProblem, match="taken"):
        store.tag("v1", "main")


def test_rolling_back_is_a_new_version_with_old_rows(store: Store, record: Record) -> None:
    first = record(make_rows(5), "one", entry={"statistics": {"rows": 5}})
    record(make_rows(6), "two")
    before = chunk_files(store)

    back = store.roll_back(first.id, author="tester")

    assert [len(rows_of(store, each)) for each in store.history()] == [5, 6, 5]
    assert store.statistics(back) == {"rows": 5}
    assert back.commit.provenance.inputs == [first.id]
    assert chunk_files(store) == before


def test_the_same_rows_again_are_no_new_version(store: Store, record: Record) -> None:
    assert record(make_rows(5)) == record(make_rows(5), "again")


def test_a_branch_that_moved_meanwhile_is_not_overwritten(store: Store, record: Record) -> None:
    first = record(make_rows(5))
    second = record(make_rows(6))

    with pytest.raises(StoreProblem) as caught:
        record(make_rows(7), head=first.id)

    assert caught.value.code == "moved_meanwhile"
    assert store.version() == second
    with pytest.raises(StoreProblem, match="no longer"):
        store.refs.move("branches", "main", expected=first.id, to=first.id)


@pytest.mark.parametrize("revision", ["nothing", "", "0123456789", "f" * 64])
def test_an_unknown_version_is_told(store: Store, record: Record, revision: str) -> None:
    record(make_rows(1))

    with pytest.raises(StoreProblem) as caught:
        store.version(revision)

    assert caught.value.code in ("version_unknown", "name_unfit")


def test_a_branch_and_a_tag_cannot_have_one_name(store: Store, record: Record) -> None:
    first = record(make_rows(5))
    store.tag("v1", "main")
    store.branch("side", "main")
    attempts: list[Callable[[], object]] = [
        lambda: store.branch("v1", "main"),
        lambda: store.tag("side", "main"),
        lambda: record(make_rows(6), branch="v1"),
    ]

    for attempt in attempts:
        with pytest.raises(StoreProblem) as caught:
            attempt()
        assert caught.value.code == "name_taken"

    assert store.refs.all("branches") == {"main": first.id, "side": first.id}
    assert store.refs.all("tags") == {"v1": first.id}
    store.remove("tags", "v1")
    store.branch("v1", "main")


@pytest.mark.parametrize("name", ["../main", "a/b", "", ".hidden", "x" * 101])
def test_names_cannot_leave_their_folder(store: Store, record: Record, name: str) -> None:
    version = record(make_rows(1))

    for attempt in (
        lambda: store.branch(name, version.id),
        lambda: record({name: make_rows(1)}, branch="fresh"),
    ):
        with pytest.raises(StoreProblem) as caught:
            attempt()
        assert caught.value.code == "name_unfit"


def test_what_nothing_leads_to_is_collected_and_the_rest_is_whole(store: Store, record: Record) -> None:
    main, side = record(make_rows(3000)), record(make_rows(4000, start=10**6), branch="side")
    pinned = record(make_rows(10, start=10**7), branch="pinned")
    store.remove("branches", "side")
    store.remove("branches", "pinned")

    gone = collect_garbage(store, keep=[pinned.id])

    assert gone.files == 4  # rows, digests, tree, commit
    assert gone.size_bytes > 0
    assert rows_of(store, main) == make_rows(3000)
    assert len(rows_of(store, pinned)) == 10
    with pytest.raises(StoreProblem):
        store.version(side.id)
    assert verify(store) == []


def test_garbage_is_not_collected_while_a_version_is_written(store: Store, record: Record) -> None:
    from trellis_data.versions.refs import locked

    record(make_rows(5))

    with locked(store.root / "writing.lock", shared=True), pytest.raises(StoreProblem) as caught:
        collect_garbage(store, wait_s=0.1)

    assert caught.value.code == "store_busy"


def test_damage_is_found(store: Store, record: Record) -> None:
    version = record({"a": make_rows(5), "b": make_rows(6), "c": make_rows(7)})
    splits = store.tree(version.commit.tree).splits
    files = [store.objects.path(splits[name].chunks[0].id, ".parquet") for name in "abc"]
    table = pq.read_table(files[0])
    pq.write_table(table.set_column(0, "id", pa.array(np.arange(5) + 1)), files[0])
    files[1].unlink()
    files[2].write_bytes(files[2].read_bytes()[:100])

    found = verify(store)

    assert len(found) == 3
    assert "does not hold the rows that were stored" in found[0]
    assert "lacks the object" in found[1]
    assert "cannot be read" in found[2]


def test_a_version_is_checked_out_as_files_whole_or_not_at_all(
    store: Store, record: Record, tmp_path: Path
) -> None:
    version = record({"train": make_rows(3000), "empty": pa.table({"id": pa.array([], pa.int64())})})

    files = check_out(store, version, tmp_path / "out")

    assert pa.concat_tables(map(pq.read_table, files["train"])).to_pylist() == make_rows(3000)
    assert pq.read_table(files["empty"][0]).num_rows == 0
    with pytest.raises(StoreProblem, match="already"):
        check_out(store, version, tmp_path / "out")


def test_a_folder_without_versions_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreProblem, match="holds no versions"):
        Store(tmp_path)


def test_what_a_killed_writer_leaves_of_a_branch_is_no_branch(store: Store, record: Record) -> None:
    made = record(make_rows(10))
    left = store.root / "refs" / "branches" / "main.unfinished-0123456789abcdef0123456789abcdef"
    left.write_text(made.id[:20])

    assert store.refs.all("branches") == {"main": made.id}
    assert verify(store) == []
    collect_garbage(store)
    assert not left.exists()
    with pytest.raises(StoreProblem, match="no name"):
        store.branch(left.name, "main")


@pytest.mark.parametrize("suffix", ["parquet", "rows"])
def test_a_chunk_of_which_a_file_was_lost_is_stored_again(store: Store, record: Record, suffix: str) -> None:
    rows = make_rows(500)
    version = record({"train": rows})
    lost = next((store.root / "objects").rglob(f"*.{suffix}"))
    lost.unlink()

    record({"train": rows, "more": rows[:3]})

    assert lost.exists()
    assert rows_of(store, version) == rows
