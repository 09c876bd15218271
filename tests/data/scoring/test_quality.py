"""Scores of rows, told by their parts."""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_data.findings import Histogram, Ranking
from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem
from trellis_data.scoring.parts import (
    diversity_part,
    format_part,
    relevance_part,
    repetition_part,
)
from trellis_testing.operator_runs import answers, chats, documents, operator, run

GOOD = (
    "Photosynthesis turns sunlight, water and carbon dioxide into sugar and oxygen. Chlorophyll in the "
    "leaves "
    "absorbs the light; its energy splits water, and the hydrogen builds sugar from carbon dioxide."
)


def scores(batch: Batch, **params: Any) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = run("quality", batch, **params).table["quality"].to_pylist()
    return rows


def test_a_good_answer_is_better_than_a_bad_one_in_the_part_that_is_bad() -> None:
    prompt = "How does photosynthesis turn sunlight into sugar?"
    bad = {
        "length": "By light.",
        "repetition": "It turns sunlight into sugar. " * 10,
        "relevance": GOOD.replace("Photosynthesis turns sunlight", "Banking lends money").replace(
            "sugar", "debt"
        ),
        "format": "```python\n(" + GOOD[:-1],
        "diversity": "sugar light sugar sugar light light sugar light " * 4,
    }

    good, *others = scores(answers((prompt, GOOD), *((prompt, text) for text in bad.values())))

    for part, row in zip(bad, others, strict=True):
        assert row[part] < good[part] - 0.2, part
        assert row["total"] < good["total"], part


def test_chinese_answers_are_scored_by_characters() -> None:
    prompt = "光合作用是怎样把阳光变成糖的？"
    fitting = "光合作用利用叶绿素吸收阳光，把水和二氧化碳变成糖，并放出氧气。"
    other = "银行通过吸收存款并发放贷款来赚取利息差额，这是其主要收入。"

    good, bad = scores(answers((prompt, fitting), (prompt, other)))

    assert good["relevance"] > bad["relevance"] + 0.2
    assert good["diversity"] > 0.8


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), min_size=1, max_size=6))
def test_scores_lie_between_0_and_1_and_the_total_is_the_mean_of_the_parts(rows: Any) -> None:
    for row in scores(answers(*rows)):
        parts = [value for part, value in row.items() if part != "total" and value is not None]
        assert all(0 <= value <= 1 for value in parts)
        assert row["total"] == pytest.approx(sum(parts) / len(parts), abs=1e-5)


def test_a_part_without_weight_does_not_count() -> None:
    weights = {f"weight_{part}": 0 for part in ("length", "diversity", "repetition", "relevance")}

    (row,) = scores(answers(("q", "(open")), **weights)

    assert row["total"] == row["format"] == 0.75


def test_texts_without_a_prompt_have_no_relevance() -> None:
    (row,) = scores(documents(GOOD))

    assert row["relevance"] is None
    assert row["total"] > 0.8


def test_of_a_pair_the_chosen_answer_counts() -> None:
    table = pa.table({"prompt": ["Why?"], "chosen": [GOOD], "rejected": [""]})
    roles = {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"}
    batch = Batch(table, Layout(DataFormat.PREFERENCE, roles))

    assert scores(batch)[0]["length"] == scores(documents(GOOD))[0]["length"]


def test_a_judge_counts_where_it_gave_a_number() -> None:
    batch = answers(("q", GOOD), ("q", GOOD))
    table = batch.table.append_column("judge", pa.array([0.0, None]))

    judged, not_judged = scores(Batch(table, batch.layout), judge="judge", weight_judge=5)

    assert judged["judge"] == 0
    assert judged["total"] < not_judged["total"]


def test_the_report_shows_how_parts_are_spread_and_which_rows_stand_out() -> None:
    findings = run(
        "quality", chats(*([("user", "q"), ("assistant", text)] for text in (GOOD, "", "x")))
    ).findings

    total, rows = findings["total"], findings["rows"]
    assert isinstance(total, Histogram)
    assert sum(total.counts) == 3
    assert isinstance(rows, Ranking)
    assert rows.lowest[0].row["answer"] == ""
    assert rows.highest[0].row["answer"] == GOOD
    assert rows.lowest[0].value < rows.highest[0].value


def test_scoring_again_replaces_the_scores() -> None:
    batch = answers(("q", "a"))
    once = Batch(run("quality", batch).table, batch.layout)

    assert run("quality", once).table.column_names == ["question", "answer", "quality"]


def test_rows_without_an_answer_cannot_be_scored() -> None:
    batch = Batch(pa.table({"prompt": ["x"]}), Layout(DataFormat.PROMPT_ANSWER, {"prompt": "prompt"}))

    with pytest.raises(OperatorProblem) as caught:
        operator("quality").check(batch.table.schema, batch.layout)

    assert caught.value.code == "no_answer"


@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=120))
@settings(deadline=None)
def test_diversity_is_the_mean_over_all_windows(words: list[str]) -> None:
    width = min(50, len(words))
    windows = [words[start : start + width] for start in range(len(words) - width + 1)]
    expected = np.mean([len(set(window)) / width for window in windows])

    assert diversity_part(pl.Series([" ".join(words)]))[0] == pytest.approx(expected, abs=1e-6)


def test_relevance_is_the_share_of_terms_in_common() -> None:
    shares = relevance_part(
        pl.Series(["red green blue", "the and of", "猫喜欢鱼"]),
        pl.Series(["Green, BLUE paint!", "red", "猫喜欢狗"]),
    )

    assert shares[0] == pytest.approx(2 / 3)
    assert np.isnan(shares[1])
    # Three characters and two pairs of four and three.
    assert shares[2] == pytest.approx(5 / 7)


def test_a_fitting_chinese_answer_is_relevant_to_its_question() -> None:
    fitting, other = relevance_part(
        pl.Series(["水循环是什么？", "水循环是什么？"]),
        pl.Series(["水从海洋蒸发成云，再以雨的形式落回地面。", "猫喜欢吃鱼，也喜欢睡觉。"]),
    )

    assert fitting > other == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A sentence (with brackets).", 1.0),
        ("```python\nx = f(y[0])\n```", 1.0),
        ("```python\nx = (1\n```", 1.0),
        ("42", 1.0),
        ("这是一个完整的句子，有头有尾，而且足够长。", 1.0),
        ("```python\nx = 1", 0.75),
        ("An opening ( bracket.", 0.75),
        ("A long sentence that was cut in the middle because the model ran out of", 0.75),
        ("Done.<|im_end|>", 0.75),
    ],
)
def test_format_is_the_share_of_checks_that_hold(text: str, expected: float) -> None:
    texts = pl.Series([text])

    assert format_part(texts, repetition_part(texts)[0])[0] == expected
