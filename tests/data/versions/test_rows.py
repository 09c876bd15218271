"""Reading rows of versions: by position, by condition, by text; and how long a page of ten million takes."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from trellis_data.versions.differences import compare, read_difference
from trellis_data.versions.records import StoreProblem, Tree, Version
from trellis_data.versions.store import Store
from trellis_data.versions.version_rows import Condition, Search, find_rows, read_rows, take_rows

Record = Callable[..., Version]


def make_rows(count: int) -> list[dict[str, Any]]:
    chat = [{"role": "user", "content": "Ask"}, {"role": "assistant", "content": "Ärger"}]
    return [
        {"id": i, "text": f"row {i}" if i % 3 else None, "score": i / 2, "chat": chat if i == 2500 else []}
        for i in range(count)
    ]


@pytest.fixture
def version(record: Record) -> Version:
    return record(make_rows(40_000))


@pytest.mark.parametrize(("offset", "limit"), [(0, 3), (1020, 10), (19_990, 50), (39_995, 50), (50_000, 5)])
def test_a_page_holds_the_rows_of_its_positions(
    store: Store, version: Version, offset: int, limit: int
) -> None:
    page = read_rows(store, version, "train", offset, limit)

    assert page["id"].to_pylist() == list(range(offset, min(offset + limit, 40_000)))


def test_a_page_that_cannot_be_is_told(store: Store, record: Record) -> None:
    version = record(make_rows(5))
    found = compare(store, version, record(make_rows(6)))
    attempts: list[Callable[[], object]] = [
        lambda: read_rows(store, version, "train", -1, 5),
        lambda: read_rows(store, version, "train", 0, -1),
        lambda: find_rows(store, version, "train", Search(), limit=0),
        lambda: find_rows(store, version, "train", Search(), cursor=-1),
        lambda: read_difference(store, found, "train", "added", offset=-1),
    ]

    for attempt in attempts:
        with pytest.raises(StoreProblem) as caught:
            attempt()
        assert caught.value.code == "page_unfit"


def test_rows_are_taken_in_the_order_asked_for(store: Store, version: Version) -> None:
    wanted = np.array([39_999, 0, 1024, 1023, 0])

    taken = take_rows(store, store.tree(version.commit.tree), "train", wanted)

    assert taken["id"].to_pylist() == wanted.tolist()


def test_an_unknown_split_is_told(store: Store, version: Version) -> None:
    with pytest.raises(StoreProblem, match="there is train"):
        read_rows(store, version, "test", 0, 1)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (Search(conditions=[Condition(column="id", operator="ge", value=39_998)]), [39_998, 39_999]),
        (Search(conditions=[Condition(column="text", operator="contains", value="ROW 1999")]),
         [1999, 19_990, 19_991, 19_993, 19_994, 19_996, 19_997, 19_999]),
        (Search(text="ärgeR"), [2500]),
        (Search(text="row 77", conditions=[Condition(column="score", operator="lt", value=50.5)]), [77]),
        (Search(conditions=[Condition(column="text", operator="is_null"),
                            Condition(column="id", operator="lt", value=7)]), [0, 3, 6]),
        (Search(conditions=[Condition(column="text", operator="eq", value="row 4")]), [4]),
    ],
)  # fmt: skip
def test_rows_are_found(store: Store, version: Version, search: Search, expected: list[int]) -> None:
    found = find_rows(store, version, "train", search, seconds=30)

    assert (found.positions, found.table["id"].to_pylist(), found.cursor) == (expected, expected, None)


def test_a_search_goes_on_where_it_stopped(store: Store, version: Version) -> None:
    search = Search(conditions=[Condition(column="text", operator="not_null")])
    pages, cursor = [], 0
    while cursor is not None and len(pages) < 3:
        found = find_rows(store, version, "train", search, cursor=cursor, limit=1500)
        pages += [found.positions]
        cursor = found.cursor

    every = [i for i in range(40_000) if i % 3]
    assert [place for page in pages for place in page] == every[:4500]


def test_a_search_that_finds_nothing_is_bounded(store: Store, version: Version) -> None:
    found = find_rows(store, version, "train", Search(text="not there"), most_rows=5000)

    assert (found.positions, found.cursor == found.looked_at) == ([], True)
    assert 5000 <= found.looked_at <= 6100


@pytest.mark.parametrize(
    ("condition", "code", "part"),
    [
        (Condition(column="missing", operator="eq", value=1), "column_unknown", "column"),
        (Condition(column="id", operator="eq", value="many"), "condition_unfit", "value"),
        (Condition(column="chat", operator="contains", value="a"), "condition_unfit", "value"),
        (Condition(column="text", operator="lt", value=3), "condition_unfit", "value"),
    ],
)
def test_conditions_that_do_not_fit_are_told(
    store: Store, version: Version, condition: Condition, code: str, part: str
) -> None:
    fits = Condition(column="id", operator="ge", value=0)

    with pytest.raises(StoreProblem) as caught:
        find_rows(store, version, "train", Search(conditions=[fits, condition]))

    assert (caught.value.code, caught.value.field) == (code, f"conditions.1.{part}")


def test_a_page_of_ten_million_rows_takes_less_than_a_fifth_of_a_second(
    store: Store, version: Version, record: Record
) -> None:
    """Its list of chunks is that of ten million rows, so a page reads what it would read there."""
    tree = store.tree(version.commit.tree)
    once = tree.splits["train"]
    times = -(-10_000_000 // once.rows)
    split = once.model_copy(update={"rows": once.rows * times, "chunks": once.chunks * times})
    large = Tree.model_validate(tree.model_dump() | {"splits": {"train": split.model_dump()}})
    tree_id = store.objects.put_document(large.model_dump(mode="json"))
    commit = version.commit.model_copy(update={"tree": tree_id})

    started = time.perf_counter()
    first = read_rows(store, Version("", commit), "train", 0, 50)
    cold = time.perf_counter() - started
    pages = []
    for offset in (9_999_900, 5_000_003, 1_234_567):
        started = time.perf_counter()
        page = read_rows(store, Version("", commit), "train", offset, 50)
        pages.append(time.perf_counter() - started)
        assert page["id"].to_pylist() == [place % once.rows for place in range(offset, offset + 50)]

    assert split.rows >= 10_000_000
    assert first.num_rows == 50
    assert isinstance(first, pa.Table)
    assert cold < 0.2
    assert max(pages) < 0.2
