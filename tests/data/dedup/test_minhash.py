"""MinHash against documents whose similarity is known, and the machinery below it against plain Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_data.dedup import keys, lsh
from trellis_data.dedup.bands import RECALL_AT_THRESHOLD, choose_bands
from trellis_data.dedup.minhash import MinHashDuplicates, MinHashParams
from trellis_data.layout import Layout
from trellis_data.operator import Context, OperatorProblem
from trellis_testing.global_operators import run_global
from trellis_tools.bench.data.corpus import chunks

WORDS = [f"word{number}" for number in range(400)]


def texts(*values: str | None) -> pa.Table:
    return pa.table({"text": pa.array(values, pa.string())})


def dedupe(table: pa.Table, folder: Path, seed: int = 0, layout: Layout | None = None, **params: Any) -> Any:
    operator = MinHashDuplicates(MinHashParams(**params), Context(seed=seed))
    return run_global(operator, table, folder, **({"layout": layout} if layout else {}))


def prose(seed: int, size: int = 60) -> list[str]:
    return [WORDS[at] for at in np.random.default_rng(seed).integers(0, len(WORDS), size)]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_near_duplicates_are_found_and_nothing_else_is_merged(
    language: str, seed: int, tmp_path: Path
) -> None:
    ((documents, copies),) = list(chunks(20_000, seed, language))
    similar = copies.similarity >= 0.8

    ran = dedupe(pa.table({"text": documents}), tmp_path, seed=seed)

    removed = np.flatnonzero(~ran.keep)
    assert similar.sum() > 1500
    assert (~similar).sum() > 1000
    assert np.isin(copies.copies[similar], removed).mean() >= 0.95
    assert np.isin(removed, copies.copies[similar], invert=True).mean() <= 0.01


def test_a_cluster_file_shows_who_was_merged_with_whom_and_how_similar(tmp_path: Path) -> None:
    first = prose(1)
    table = texts(
        " ".join(first), " ".join(prose(2)), " ".join([*first[:-1], "other"]), " ".join(first).upper()
    )

    ran = dedupe(table, tmp_path)

    assert ran.keep.tolist() == [True, True, False, False]
    assert set(ran.reasons.values()) == {"near_duplicate"}
    rows = pq.read_table(ran.reduced / ran.findings["file"]).to_pylist()
    assert [(row["cluster"], row["position"], row["survives"]) for row in rows] == [
        (0, 0, True),
        (0, 2, False),
        (0, 3, False),
    ]
    # 56 runs of five words each; the last one is another.
    assert [row["similarity"] for row in rows] == pytest.approx([1.0, 55 / 57, 1.0])
    assert all(row["text"].lower().startswith(" ".join(first[:5])) for row in rows)
    assert ran.findings["removed"] == 2
    assert ran.findings["rate"] == 0.5
    assert ran.findings["largest"] == [{"size": 3, "survivor": 0, "text": rows[0]["text"]}]


@pytest.mark.parametrize(("keep", "stays"), [("first", 0), ("longest", 1), ("best", 2)])
def test_who_survives_is_a_choice(keep: str, stays: int, tmp_path: Path) -> None:
    words = " ".join(prose(1, 100))
    table = texts(words, words + " and more", words + "!").append_column(
        "score", pa.array([0.1, None, 0.9], pa.float64())
    )

    ran = dedupe(table, tmp_path, keep=keep, score_column="score")

    assert np.flatnonzero(ran.keep).tolist() == [stays]


def test_the_best_row_needs_a_column_of_numbers(tmp_path: Path) -> None:
    with pytest.raises(OperatorProblem, match="score_column"):
        dedupe(texts("a"), tmp_path, keep="best")
    with pytest.raises(OperatorProblem, match="No column 'score'"):
        dedupe(texts("a"), tmp_path, keep="best", score_column="score")
    with pytest.raises(OperatorProblem, match="number"):
        dedupe(texts("a"), tmp_path, keep="best", score_column="text")


def test_conversations_are_compared_as_a_whole_or_by_a_part(tmp_path: Path) -> None:
    question, answer, other = (" ".join(prose(seed)) for seed in (1, 2, 3))
    rows = [
        [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
        for reply in (answer, other)
    ]
    layout = Layout(DataFormat.MESSAGES, {"messages": "messages"})
    table = pa.table({"messages": rows})

    whole = dedupe(table, tmp_path / "whole", layout=layout)
    questions = dedupe(table, tmp_path / "questions", layout=layout, where="user")

    assert whole.keep.tolist() == [True, True]
    assert questions.keep.tolist() == [True, False]


def test_rows_without_words_are_left_alone(tmp_path: Path) -> None:
    ran = dedupe(texts(None, "", " ...", None, "。"), tmp_path)

    assert ran.keep.all()


def test_sums_that_differ_in_a_sign_are_different(tmp_path: Path) -> None:
    ran = dedupe(texts("What is 3 + 4?", "What is 3 - 4?", "what is 3 + 4"), tmp_path, shingle=1)

    assert ran.keep.tolist() == [True, True, False]


def test_a_crowd_of_identical_rows_and_a_crowd_of_similar_ones_become_one_each(tmp_path: Path) -> None:
    one, other = prose(1, 120), prose(2, 120)
    similar = [[*other[:at], f"x{at}", *other[at + 1 :]] for at in range(5, 110)]
    table = texts(*[" ".join(one)] * 3000, " ".join(other), *[" ".join(each) for each in similar])

    ran = dedupe(table, tmp_path)

    assert np.flatnonzero(ran.keep).tolist() == [0, 3000]
    assert ran.findings["cluster_sizes"]["1000+"] == 1
    assert ran.findings["cluster_sizes"]["100-999"] == 1


def test_sorting_and_comparing_in_small_parts_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((documents, _),) = list(chunks(3000, 5))
    table = pa.table({"text": documents})
    at_once = dedupe(table, tmp_path / "at once")
    monkeypatch.setattr(keys, "PART_ROWS", 700)
    monkeypatch.setattr(lsh, "PENDING_PAIRS", 50)
    monkeypatch.setattr(lsh, "SHINGLES_AT_ONCE", 1000)

    in_parts = dedupe(table, tmp_path / "parts")

    assert not at_once.keep.all()
    assert (at_once.keep == in_parts.keep).all()


@given(st.floats(0.3, 1.0), st.integers(16, 512))
@settings(max_examples=50)
def test_bands_find_pairs_at_the_threshold_within_the_signature(threshold: float, permutations: int) -> None:
    bands = choose_bands(threshold, permutations)

    assert bands.number * bands.rows <= permutations
    assert bands.rows == 1 or bands.probability(threshold) >= RECALL_AT_THRESHOLD


@given(st.lists(st.sampled_from(["a", "b", "ab", "汉", "字", "Ａ", "é", "𠀀", "…", "+"]), max_size=12))
@settings(max_examples=60, deadline=None)
def test_words_and_single_characters_are_tokens(parts: list[str]) -> None:
    from trellis_data.dedup import alphabet, kernels

    raw = " ".join(parts).encode()
    tokens = np.zeros(len(raw) + 1, dtype=np.uint64)
    count = kernels.tokens_of(np.frombuffer(raw, np.uint8), 0, len(raw), *alphabet.tables(), tokens)

    expected = ["a" if part == "Ａ" else part for part in parts if part != "…"]
    assert count == len(expected)
    seen: dict[str, int] = {}
    for token, value in zip(expected, tokens, strict=False):
        assert seen.setdefault(token, int(value)) == int(value)
    assert len(set(seen.values())) == len(seen)
