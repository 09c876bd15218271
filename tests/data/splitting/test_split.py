"""What a split promises: shares, numbers, nothing torn apart, and rows that stay where they were."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from trellis_data.operator import Context, OperatorProblem
from trellis_data.splitting.parameters import SplitParams
from trellis_data.splitting.split import Split
from trellis_testing.global_operators import run_global
from trellis_testing.paraphrases import PARAPHRASES
from trellis_tools.bench.data.corpus import chunks

RATIOS = {"train": 0.8, "validation": 0.1, "test": 0.1}


def rows(count: int, **columns: Any) -> pa.Table:
    return pa.table({"text": [f"document {number}" for number in range(count)], **columns})


def parts(table: pa.Table, folder: Path, seed: int = 7, **params: Any) -> list[str]:
    ran = run_global(Split(SplitParams(**params), Context(seed=seed)), table, folder)
    assert ran.keep.all()
    names: list[str] = ran.table.column("split").to_pylist()
    assert ran.findings["parts"] == {name: names.count(name) for name in ran.findings["parts"]}
    return names


def assert_binomial(number: int, total: int, share: float) -> None:
    """Within five standard deviations: one failure in two million."""
    assert abs(number - total * share) <= 5 * (total * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_chance_keeps_the_shares_and_depends_on_the_seed(seed: int, tmp_path: Path) -> None:
    table = rows(20_000)

    names = parts(table, tmp_path / "one", seed=seed, ratios=RATIOS)

    for name, share in RATIOS.items():
        assert_binomial(names.count(name), 20_000, share)
    assert names == parts(table, tmp_path / "again", seed=seed, ratios=RATIOS)
    assert names != parts(table, tmp_path / "other", seed=seed + 1, ratios=RATIOS)


@pytest.mark.parametrize(
    "params",
    [
        {"mode": "random"},
        {"mode": "grouped", "by": "group"},
        {"mode": "stratified", "by": "kind"},
        {"mode": "semantic", "compare": "words"},
    ],
    ids=lambda params: params["mode"],
)
@settings(max_examples=8, deadline=None)
@given(before=st.integers(1, 300), added=st.integers(1, 300), seed=st.integers(0, 2**32))
def test_no_row_moves_when_rows_are_appended(
    params: dict[str, Any], before: int, added: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    total = before + added
    values = np.random.default_rng(seed).integers(0, 40, total)
    table = rows(total, group=[f"g{value}" for value in values], kind=(values % 3).tolist())

    first = parts(table.slice(0, before), tmp_path_factory.mktemp("a"), seed, ratios=RATIOS, **params)
    later = parts(table, tmp_path_factory.mktemp("b"), seed, ratios=RATIOS, **params)

    assert later[:before] == first


@settings(max_examples=15, deadline=None)
@given(before=st.integers(60, 300), added=st.integers(1, 50), seed=st.integers(0, 2**32))
def test_with_numbers_no_more_rows_move_than_are_appended(
    before: int, added: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    counts = {"validation": 20, "test": 30}
    table = rows(before + added)

    first = parts(table.slice(0, before), tmp_path_factory.mktemp("a"), seed, counts=counts)
    later = parts(table, tmp_path_factory.mktemp("b"), seed, counts=counts)

    assert {name: first.count(name) for name in counts} == counts
    assert {name: later.count(name) for name in counts} == counts
    left_test = sum(a == "test" and b != "test" for a, b in zip(first, later, strict=False))
    left_held_out = sum(a != "train" and b == "train" for a, b in zip(first, later, strict=False))
    assert left_held_out <= added
    assert left_test <= added


@settings(max_examples=15, deadline=None)
@given(groups=st.lists(st.integers(0, 30) | st.none(), min_size=1, max_size=400), with_counts=st.booleans())
def test_a_group_never_straddles(
    groups: list[int | None], with_counts: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = rows(len(groups), group=pa.array(groups, pa.int64()))
    how: dict[str, Any] = (
        {"counts": {"test": max(1, len(groups) // 5)}} if with_counts else {"ratios": RATIOS}
    )

    names = parts(table, tmp_path_factory.mktemp("groups"), mode="grouped", by="group", **how)

    for group in set(groups) - {None}:
        assert len({name for name, mine in zip(names, groups, strict=True) if mine == group}) == 1
    if with_counts:
        largest = max([groups.count(group) for group in set(groups) - {None}], default=1)
        assert how["counts"]["test"] <= names.count("test") < how["counts"]["test"] + max(largest, 2)


def test_groups_keep_the_shares(tmp_path: Path) -> None:
    groups = [f"person {number // 4}" for number in range(20_000)]

    names = parts(rows(20_000, group=groups), tmp_path, mode="grouped", by="group", ratios=RATIOS)

    for name, share in RATIOS.items():
        assert_binomial(names.count(name) // 4, 5_000, share)


@pytest.mark.parametrize("nameless", [None, "", " \t"])
def test_rows_without_a_group_are_no_group(nameless: str | None, tmp_path: Path) -> None:
    groups = pa.array([nameless] * 2_000, pa.string())

    names = parts(rows(2_000, group=groups), tmp_path, mode="grouped", by="group", ratios=RATIOS)

    for name, share in RATIOS.items():
        assert_binomial(names.count(name), 2_000, share)


@pytest.mark.parametrize("how", [{"ratios": RATIOS}, {"counts": {"validation": 1000, "test": 1000}}])
def test_every_class_is_split_in_the_same_shares(how: dict[str, Any], tmp_path: Path) -> None:
    kinds = np.random.default_rng(1).choice(["a", "b", "c"], 10_000, p=[0.9, 0.09, 0.01])

    names = np.array(parts(rows(10_000, kind=kinds), tmp_path, mode="stratified", by="kind", **how))

    for kind in "abc":
        mine = names[kinds == kind]
        for name, share in RATIOS.items():
            assert abs((mine == name).sum() - share * len(mine)) <= 4


def test_scores_are_split_in_classes_of_quality(tmp_path: Path) -> None:
    scores = np.random.default_rng(1).normal(size=5_000)

    names = np.array(parts(rows(5_000, score=scores), tmp_path, mode="stratified", by="score", ratios=RATIOS))

    for low in np.arange(0, 1, 0.1):
        inside = (scores >= np.quantile(scores, low)) & (scores < np.quantile(scores, low + 0.1))
        assert abs((names[inside] == "test").sum() - 50) <= 4


@pytest.mark.parametrize("kind", ["timestamp", "text", "number"])
def test_by_time_the_newest_rows_are_for_the_test(kind: str, tmp_path: Path) -> None:
    moments = np.random.default_rng(1).permutation(1000)
    days = [datetime(2020, 1, 1) + timedelta(hours=int(moment)) for moment in moments]
    column = {"timestamp": days, "text": [day.isoformat() for day in days], "number": moments.tolist()}[kind]
    table = rows(1000, time=column)

    by_share = np.array(parts(table, tmp_path / "a", mode="temporal", by="time", ratios=RATIOS))
    by_number = np.array(parts(table, tmp_path / "b", mode="temporal", by="time", counts={"test": 30}))

    assert moments[by_share == "train"].tolist() == [moment for moment in moments if moment < 800]
    assert moments[by_share == "test"].min() == 900
    assert sorted(moments[by_number == "test"]) == list(range(970, 1000))


def test_rows_of_one_time_are_in_one_part_and_rows_without_are_the_oldest(tmp_path: Path) -> None:
    times = [5, 5, 5, 5, 5, 5, 5, 5, None, 9]

    names = parts(rows(10, time=times), tmp_path, mode="temporal", by="time", ratios={"a": 0.5, "b": 0.5})

    assert names == ["a"] * 9 + ["b"]


def test_by_time_a_row_only_ever_moves_to_an_older_part(tmp_path: Path) -> None:
    times = np.arange(500)
    order = list(RATIOS)
    table = rows(500, time=times)

    first = parts(table.slice(0, 300), tmp_path / "a", mode="temporal", by="time", ratios=RATIOS)
    later = parts(table, tmp_path / "b", mode="temporal", by="time", ratios=RATIOS)

    assert all(order.index(b) <= order.index(a) for a, b in zip(first, later, strict=False))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_similar_texts_are_never_parted(language: str, tmp_path: Path) -> None:
    ((documents, copies),) = list(chunks(4000, 2, language))
    table = pa.table({"text": documents})
    # The corpus tells similarity by runs of five words.
    similar = copies.similarity >= 0.6

    names = np.array(parts(table, tmp_path / "s", mode="semantic", compare="words", shingle=5, ratios=RATIOS))
    by_chance = np.array(parts(table, tmp_path / "r", mode="random", ratios=RATIOS))

    assert similar.sum() > 300
    originals, alike = copies.originals[similar], copies.copies[similar]
    assert (names[originals] == names[alike]).mean() >= 0.999
    assert (by_chance[originals] != by_chance[alike]).mean() > 0.1
    assert_binomial(int((names == "train").sum()), 4000, 0.8)


def test_a_paraphrase_stays_with_its_question(tmp_path: Path) -> None:
    """Other words, the same meaning: only the encoder knows; Chinese texts still go by their words."""
    topics = [*PARAPHRASES, ("请问今天北京的天气怎么样呢", "请问今天北京的天气怎么样呢？")]
    table = pa.table({"text": [text for pair in topics for text in pair]})

    ran = run_global(Split(SplitParams(mode="semantic", ratios=RATIOS), Context(seed=7)), table, tmp_path)

    names = ran.table.column("split").to_pylist()
    assert names[0::2] == names[1::2]
    assert ran.findings["groups"] == len(topics)


def test_equal_texts_are_never_parted_by_chance(tmp_path: Path) -> None:
    table = pa.table({"text": [f"Text {number % 300}" for number in range(900)]})

    for how in ({"ratios": RATIOS}, {"counts": {"test": 100}}):
        names = parts(table, tmp_path / str(len(how)) / next(iter(how)), mode="random", **how)
        assert names[:300] == names[300:600] == names[600:]


def test_more_rows_than_there_are_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(OperatorProblem, match="11 rows are asked for, there are 10"):
        parts(rows(10), tmp_path, counts={"test": 11})


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorProblem, match="No column 'group'"):
        parts(rows(10), tmp_path, mode="grouped", by="group")


def test_an_old_split_is_written_anew(tmp_path: Path) -> None:
    names = parts(rows(50, split=["old"] * 50), tmp_path, ratios=RATIOS)

    assert set(names) <= set(RATIOS)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ratios": {"train": 0.5, "test": 0.4}}, "add up to 0.9"),
        ({"ratios": {"train": 1.0}}, "two parts"),
        ({"mode": "grouped"}, "needs 'by'"),
        ({"counts": {"train": 5}}, "gets the rest"),
        ({"counts": {}}, "at least one part"),
        ({"counts": {"../x": 5}}, "no name of a part"),
    ],
)
def test_what_cannot_be_split_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SplitParams(**params)


def test_times_may_be_written_in_all_ways_of_iso_8601(tmp_path: Path) -> None:
    times = ["2024-01-01", "2024-01-02T05:00:00Z", "2024-01-02 06:00:00", "2024-01-02T09:00:00.5+02:00", "no"]

    names = parts(rows(5, time=times), tmp_path, mode="temporal", by="time", counts={"test": 2})

    assert names == ["train", "train", "test", "test", "train"]


def test_rows_without_a_score_are_a_class_of_their_own(tmp_path: Path) -> None:
    # Of one class, rows this far apart would nearly all go to the same part.
    low, size = np.arange(40) * 233, 40 * 233
    scores = np.full(size + 40, np.nan)
    scores[low], scores[size:] = 0.0, 1.0
    column = pa.array(scores, pa.float64(), from_pandas=True)

    names = np.array(
        parts(
            rows(len(scores), score=column), tmp_path, mode="stratified", by="score", buckets=2, ratios=RATIOS
        )
    )

    assert abs((names[low] == "train").sum() - 32) <= 4
