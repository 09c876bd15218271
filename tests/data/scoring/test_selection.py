"""Rows chosen by a score, and how hard rows are."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_data.catalogue import find_operator
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, GlobalOperator, OperatorProblem
from trellis_testing.operator_runs import run

UNKNOWN = Layout(DataFormat.UNKNOWN)


def select(folder: Path, shards: list[list[float | None]], **params: Any) -> tuple[list[int], dict[str, Any]]:
    """Positions of the rows that go on, and the findings; each shard in batches of two."""
    kind = find_operator("filter_by_score")
    chosen = kind(kind.Params.model_validate({"score": "s.total", **params}), Context())
    assert isinstance(chosen, GlobalOperator)
    batches: list[list[Batch]] = []
    start = 0
    for shard in shards:
        batches.append([])
        for first in range(0, len(shard), 2):
            values = shard[first : first + 2]
            table = pa.table(
                {"s": pa.array([{"total": value} for value in values], pa.struct({"total": pa.float32()}))}
            )
            batches[-1].append(Batch(table, UNKNOWN, start))
            start += len(values)
    folders = []
    for number, shard_batches in enumerate(batches):
        folders.append(folder / f"scan-{number}")
        folders[-1].mkdir(parents=True)
        chosen.scan(iter(shard_batches), folders[-1])
    reduced = folder / "reduced"
    reduced.mkdir()
    findings = chosen.reduce(folders, reduced)
    kept = [
        batch.start + index
        for shard_batches in batches
        for batch in shard_batches
        for index in np.flatnonzero(chosen.apply(batch, reduced).keep)
    ]
    return kept, findings


def test_rows_within_bounds_go_on(tmp_path: Path) -> None:
    kept, findings = select(tmp_path, [[0.1, 0.5, None], [0.9, 0.6]], minimum=0.5, maximum=0.75)

    assert kept == [1, 4]
    assert findings["scored"] == 4
    assert sum(findings["histogram"]["counts"]) == 4


def test_the_best_share_is_exact_and_of_equals_the_first_go_on(tmp_path: Path) -> None:
    kept, findings = select(tmp_path, [[0.5, 0.9, 0.5], [0.5, 0.1, 0.5]], best_share=0.5)

    assert kept == [0, 1, 2]
    assert findings["lowest_kept"] == 0.5


def test_rows_without_a_score_go_only_where_that_is_asked_for(tmp_path: Path) -> None:
    assert select(tmp_path / "a", [[None, 1.0]], minimum=0.5)[0] == [1]
    assert select(tmp_path / "b", [[None, 1.0]], minimum=0.5, keep_unscored=True)[0] == [0, 1]
    assert select(tmp_path / "c", [[]], minimum=0.5) == ([], {"rows": 0, "scored": 0})


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.integers(0, 5), min_size=1, max_size=20), share=st.floats(0.05, 1))
def test_no_row_that_is_left_out_is_better_than_one_that_goes_on(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], share: float
) -> None:
    kept, _ = select(tmp_path_factory.mktemp("s"), [[float(value) for value in values]], best_share=share)

    assert len(kept) == round(len(values) * share)
    out = [value for index, value in enumerate(values) if index not in kept]
    assert not out or not kept or max(out) <= min(values[index] for index in kept)


@pytest.mark.parametrize(
    ("score", "code"), [("other", "column_missing"), ("s.other", "part_missing"), ("t", "not_a_number")]
)
def test_a_score_that_is_not_there_is_refused(score: str, code: str) -> None:
    schema = pa.schema([("s", pa.struct({"total": pa.float32()})), ("t", pa.string())])
    kind = find_operator("filter_by_score")
    outlined = kind.outline(kind.Params.model_validate({"score": score, "minimum": 0}), Context())

    with pytest.raises(OperatorProblem) as caught:
        outlined.check(schema, UNKNOWN)

    assert caught.value.code == code


def test_difficulty_comes_from_rewards_of_attempts() -> None:
    rewards = [[1.0, 1.0], [0.0, 1.0, 0.5, 0.0], [], None, [None, 1.0]]
    batch = Batch(pa.table({"rewards": pa.array(rewards, pa.list_(pa.float64()))}), UNKNOWN)

    outcome = run("difficulty", batch, attempts="rewards")

    assert outcome.table["difficulty"].to_pylist() == [0.0, 0.75, None, None, 0.0]
    assert sum(outcome.findings["difficulty"].counts) == 3


def test_difficulty_comes_from_pass_rates_and_drops_what_teaches_nothing() -> None:
    batch = Batch(pa.table({"stats": [{"rate": rate} for rate in (1.0, 0.25, 0.0, None, 7.0)]}), UNKNOWN)

    outcome = run("difficulty", batch, attempts="stats.rate", easiest=0.1, hardest=0.9)

    assert outcome.reasons == {0: "too_easy", 2: "too_hard", 4: "pass_rate_out_of_range"}
    assert outcome.table["difficulty"].to_pylist() == [0.75, None]


def test_a_score_without_bounds_counts_like_any_other(tmp_path: Path) -> None:
    kept, findings = select(tmp_path, [[float("inf"), 0.5], [float("-inf"), 0.7]], best_share=0.5)

    assert kept == [0, 3]
    assert findings["scored"] == 4


def test_whole_numbers_of_any_size_are_scores(tmp_path: Path) -> None:
    kind = find_operator("filter_by_score")
    chosen = kind(kind.Params.model_validate({"score": "at", "best_share": 0.5}), Context())
    assert isinstance(chosen, GlobalOperator)

    chosen.scan(iter([Batch(pa.table({"at": [1_700_000_000_123_456_789, 2]}), UNKNOWN)]), tmp_path)

    chosen.reduce([tmp_path], tmp_path)
    assert chosen.apply(Batch(pa.table({"at": [1, 2]}), UNKNOWN), tmp_path).keep.tolist() == [True, False]
