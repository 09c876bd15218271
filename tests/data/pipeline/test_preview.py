"""Previews: every step on each row of a sample."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.pipeline.preview import preview
from trellis_data.pipeline.touched_rows import SearchLimits

pytestmark = pytest.mark.usefixtures("small_operators")
TEXT = Layout(DataFormat.TEXT, {"text": "text"})
Shards = Callable[..., list[Path]]


def pipeline(*steps: Any, seed: int = 1) -> Pipeline:
    return Pipeline.model_validate({"name": "p", "seed": seed, "steps": list(steps)})


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": i, "text": "abc" if i % 2 else f"row {i}"} for i in range(count)]


def test_each_step_shows_each_row_before_and_after(shards: Shards) -> None:
    asked = pipeline({"operator": "test_drop_short", "params": {"shortest": 4}}, {"operator": "test_shout"})

    shown = preview(asked, shards(rows(100)), layout=TEXT, rows=4)

    dropping, shouting = shown.steps
    assert [(row.position, row.state, row.reason) for row in dropping.rows] == [
        (0, "kept", None),
        (1, "dropped", "too_short"),
        (2, "kept", None),
        (3, "dropped", "too_short"),
    ]
    assert [(row.position, row.before["text"], row.after[0]["text"]) for row in shouting.rows] == [
        (0, "row 0", "ROW 0"),
        (2, "row 2", "ROW 2"),
    ]
    assert (shown.rows_in, shown.rows_out, dropping.report.dropped) == (4, 2, 2)


def test_rows_drawn_at_random_come_from_everywhere_and_the_same_each_time(shards: Shards) -> None:
    files, asked = shards(rows(900)), pipeline({"operator": "test_shout"})

    first = preview(asked, files, layout=TEXT, rows=20, at_random=True)
    again = preview(asked, files, layout=TEXT, rows=20, at_random=True)
    other = preview(pipeline({"operator": "test_shout"}, seed=2), files, layout=TEXT, rows=20, at_random=True)

    places = [row.position for row in first.steps[0].rows]
    assert first == again != other
    assert places == sorted(set(places))
    assert places[-1] > 600
    assert [row.before["id"] for row in first.steps[0].rows] == places


def test_global_steps_see_the_sample(shards: Shards) -> None:
    shown = preview(pipeline({"operator": "test_drop_seen"}), shards(rows(100)), layout=TEXT, rows=4)

    assert [row.state for row in shown.steps[0].rows] == ["kept", "kept", "kept", "dropped"]


def test_a_row_that_becomes_two_shows_both(shards: Shards) -> None:
    shown = preview(pipeline({"operator": "test_twice"}), shards(rows(10)), layout=TEXT, rows=1)

    assert [each["id"] for each in shown.steps[0].rows[0].after] == [0, 0]


def test_searching_shows_rows_that_a_step_touches_before_the_first_ones(shards: Shards) -> None:
    given = [{"id": i, "text": "abc" if i in (700, 711, 850) else f"row {i}"} for i in range(900)]
    asked = pipeline({"operator": "test_drop_short", "params": {"shortest": 4}})

    shown = preview(asked, shards(given), layout=TEXT, rows=5, find_changed=True)

    dropped = [row.position for row in shown.steps[0].rows if row.state == "dropped"]
    assert dropped == [700, 711, 850]
    assert [row.position for row in shown.steps[0].rows if row.state == "kept"] == [0, 1]
    assert (shown.rows_searched, shown.rows_touched, shown.rows_in) == (900, 3, 5)


def test_a_search_ends_with_enough_rows_and_at_its_limit(shards: Shards) -> None:
    files = shards([{"id": i, "text": "abc" if i >= 1000 else "ab"} for i in range(3000)])
    asked = pipeline({"operator": "test_drop_short", "params": {"shortest": 3}})

    enough = preview(asked, files, layout=TEXT, rows=10, find_changed=True)
    asked_other = pipeline({"operator": "test_drop_short", "params": {"shortest": 4}})
    kept_first = preview(
        pipeline({"operator": "test_drop_short", "params": {"shortest": 1}}),
        files,
        layout=TEXT,
        rows=10,
        find_changed=True,
        limits=SearchLimits(rows=1200),
    )

    assert enough.rows_searched is not None
    assert enough.rows_searched < 1000
    assert (kept_first.rows_searched, kept_first.rows_touched) == (1200, 0)
    drawn = preview(asked_other, files, layout=TEXT, rows=10, find_changed=True, at_random=True)
    assert drawn.rows_touched == 10


def test_steps_that_compare_rows_are_passed_over_in_a_search(shards: Shards) -> None:
    given = [{"id": i, "text": "abc" if i == 40 else f"row {i % 7}"} for i in range(100)]
    asked = pipeline(
        {"operator": "test_drop_seen"}, {"operator": "test_drop_short", "params": {"shortest": 4}}
    )

    shown = preview(asked, shards(given), layout=TEXT, rows=2, find_changed=True)

    assert shown.rows_touched == 1
    assert [row.position for row in shown.steps[0].rows] == [0, 40]
