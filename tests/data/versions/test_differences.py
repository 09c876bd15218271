"""What differs between two versions: counts, rows, columns; against a plain comparison in Python."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from trellis_data.versions import differences
from trellis_data.versions.differences import Counts, compare, read_difference
from trellis_data.versions.records import StoreProblem, Version
from trellis_data.versions.store import Store
from trellis_data.versions.upkeep import collect_garbage

Record = Callable[..., Version]


def make_rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"row {i}"} for i in range(start, start + count)]


@pytest.mark.parametrize("bucket", [1_000_000, 700])
def test_rows_added_removed_and_changed_are_told_by_their_key(
    store: Store, record: Record, monkeypatch: pytest.MonkeyPatch, bucket: int
) -> None:
    monkeypatch.setattr(differences, "_BUCKET_ROWS", bucket)
    old = make_rows(20_000)
    new = [*old[:100], *old[103:], *make_rows(4, start=10**6)]
    for place in range(5000, 6000, 10):
        new[place] = {**new[place], "text": "edited"}
    before, after = record(old), record(new)

    found = compare(store, before, after, key="id")

    assert found.total == Counts(added=4, removed=3, changed=100, same=20_000 - 3 - 100)
    added = read_difference(store, found, "train", "added")
    removed = read_difference(store, found, "train", "removed")
    changed = read_difference(store, found, "train", "changed", offset=98)
    assert [(old, new["id"]) for old, new in added if new] == [(None, 10**6 + i) for i in range(4)]
    assert [(old["id"], new) for old, new in removed if old] == [(i, None) for i in (100, 101, 102)]
    assert len(changed) == 2
    for was, now in changed:
        assert was is not None
        assert now is not None
        assert (was["id"], was["text"] != "edited", now["text"]) == (now["id"], True, "edited")


def test_without_a_key_a_changed_row_is_one_less_and_one_more(store: Store, record: Record) -> None:
    rows = make_rows(10)
    before, after = record(rows), record([{**rows[0], "text": "x"}, *rows[1:]])

    assert compare(store, before, after).total == Counts(added=1, removed=1, same=9)


def test_rows_count_as_often_as_they_occur_and_order_does_not_matter(store: Store, record: Record) -> None:
    one, two, three = make_rows(3)
    before, after = record([one, one, one, two]), record([three, two, one])

    found = compare(store, before, after)

    assert found.total == Counts(added=1, removed=2, same=2)
    assert [old for old, _ in read_difference(store, found, "train", "removed")] == [one, one]


def test_splits_are_compared_by_name(store: Store, record: Record) -> None:
    rows = make_rows(10)
    before, after = record({"train": rows}), record({"train": rows[:8], "test": rows[8:]})

    found = compare(store, before, after)

    assert found.splits == {"train": Counts(removed=2, same=8), "test": Counts(added=2)}
    assert [new for _, new in read_difference(store, found, "test", "added")] == rows[8:]
    with pytest.raises(StoreProblem, match="other"):
        read_difference(store, found, "other", "added")


def test_columns_and_statistics_stand_side_by_side(store: Store, record: Record) -> None:
    before = record([{"a": 1, "b": 1}], entry={"statistics": {"rows": 1}})
    after = record([{"a": "1", "c": 1}])

    found = compare(store, before, after)

    assert [(each.name, each.before, each.after) for each in found.columns] == [
        ("a", "int64", "string"),
        ("b", "int64", None),
        ("c", None, "int64"),
    ]
    assert found.statistics == ({"rows": 1}, None)


def test_untouched_chunks_are_not_read(store: Store, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_rows(60_000)
    before, after = record(rows), record([*rows, *make_rows(1, start=10**6)])
    asked: Counter[str] = Counter()
    read = store.objects.digests
    monkeypatch.setattr(store.objects, "digests", lambda chunk: asked.update([chunk]) or read(chunk))

    found = compare(store, before, after)

    assert found.total == Counts(added=1, same=60_000)
    assert len(asked) == 2
    assert compare(store, before, after) == found
    assert sum(asked.values()) == 2


def test_a_page_is_read_also_after_the_store_was_tidied(store: Store, record: Record) -> None:
    found = compare(store, record(make_rows(5)), record(make_rows(7)))

    collect_garbage(store)

    assert [new for _, new in read_difference(store, found, "train", "added")] == make_rows(2, start=5)


def test_nothing_is_tidied_away_while_versions_are_compared(
    store: Store, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = record(make_rows(5)), record(make_rows(7))
    compare_split = differences._compare_split
    codes: list[str] = []

    def tidied_meanwhile(*args: Any) -> Counts:
        try:
            collect_garbage(store, wait_s=0.1)
        except StoreProblem as problem:
            codes.append(problem.code)
        return compare_split(*args)

    monkeypatch.setattr(differences, "_compare_split", tidied_meanwhile)

    assert compare(store, before, after).total.added == 2
    assert codes == ["store_busy"]


def test_a_key_that_a_version_lacks_is_told(store: Store, record: Record) -> None:
    version = record(make_rows(1))

    with pytest.raises(StoreProblem) as caught:
        compare(store, version, version, key="uid")

    assert caught.value.code == "column_unknown"


def test_rows_without_a_key_are_never_taken_for_each_other(store: Store, record: Record) -> None:
    one, two, three = make_rows(3)
    before, after = record([one, {**two, "id": None}]), record([one, {**three, "id": None}])

    assert compare(store, before, after, key="id").total == Counts(added=1, removed=1, same=1)
