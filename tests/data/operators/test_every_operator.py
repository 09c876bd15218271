"""What holds for every operator on texts, whatever it does."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_data.catalogue import describe, operators
from trellis_data.operators.text_operator import outside_code, outside_code_of_all
from trellis_testing.operator_runs import answers, chats, documents, operator, run

PARAMS: dict[str, dict[str, Any]] = {
    "normalise_text": {},
    "control_characters": {},
    "html": {},
    "urls": {"max_ratio": 0.5},
    "empty_answers": {},
    "length": {"unit": "characters", "minimum": 2, "scope": "text"},
    "language": {"keep": ["zh", "en"], "min_confidence": 0.3},
    "repetition": {"min_words": 3},
    "personal_data": {"numbered": True},
    "word_list": {"lists": ["refusals", "toxicity"], "action": "mask"},
    "json_schema": {"rules": {"properties": {"text": {"minLength": 2}}}},
    "decontaminate": {"benchmarks": ["bench"], "words": 4, "min_words": 2},
}
#: Pieces that operators react to, among arbitrary characters.
_PIECES = st.sampled_from(
    ["<b>", "</p>", "&amp;", "`a  b`", "```\n  x  y\n", "https://a.org/x", "user@mail.com", "13812345678",
     "8.8.8.8", "\r\n", "   ", "\u200b", "\x00", "中文内容", "fuck", "I cannot help with",
     "the of and is it", "Ã©"]
)  # fmt: skip
_TEXTS = st.lists(_PIECES | st.text(max_size=8), max_size=8).map("".join)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    bench = tmp_path_factory.mktemp("bench") / "bench.jsonl"
    bench.write_text(json.dumps({"question": "the of and is it 中文内容"}) + "\n")
    return {name: operator(name, resources={"bench": bench}, **params) for name, params in PARAMS.items()}


def test_every_cleaning_operator_is_looked_at_here() -> None:
    assert {name for name, kind in operators().items() if kind.group == "clean"} == set(PARAMS)


@pytest.mark.parametrize("name", [*PARAMS, "quality", "judge", "difficulty", "filter_by_score"])
def test_forms_can_be_made_from_every_operator_in_both_languages(name: str) -> None:
    description = describe(operators()[name])

    for param in description["params_schema"]["properties"].values():
        for texts in (param["title_texts"], param["help_texts"]):
            assert texts["en"]
            assert any("\u4e00" <= character <= "\u9fff" for character in texts["zh"])


@pytest.mark.parametrize("name", PARAMS)
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(_TEXTS, _TEXTS), min_size=1, max_size=5))
def test_a_row_fares_the_same_alone_and_among_others_in_every_format(
    made: dict[str, Any], name: str, rows: list[tuple[str, str]]
) -> None:
    operator_ = made[name]
    if name == "json_schema":  # looks at rows, not at texts
        return
    together = operator_.apply(answers(*rows))
    as_chats = operator_.apply(chats(*([("user", one), ("assistant", other)] for one, other in rows)))

    alone = [operator_.apply(answers(row)) for row in rows]

    assert together.keep.tolist() == [bool(outcome.keep[0]) for outcome in alone]
    assert together.table.to_pylist() == [row for outcome in alone for row in outcome.table.to_pylist()]
    assert as_chats.keep.tolist() == together.keep.tolist()
    assert [[turn["content"] for turn in row["messages"]] for row in as_chats.table.to_pylist()] == [
        [row["question"], row["answer"]] for row in together.table.to_pylist()
    ]


@pytest.mark.parametrize("name", [name for name in PARAMS if name not in ("html", "json_schema")])
@settings(max_examples=40, deadline=None)
@given(text=_TEXTS)
def test_what_was_cleaned_stays_as_it_is(made: dict[str, Any], name: str, text: str) -> None:
    once = made[name].apply(answers(("q", text)))

    again = made[name].apply(answers(*((row["question"], row["answer"]) for row in once.table.to_pylist())))

    assert again.table.to_pylist() == once.table.to_pylist()
    assert not again.changed.any()


@pytest.mark.parametrize("name", PARAMS)
def test_no_rows_are_no_problem(made: dict[str, Any], name: str) -> None:
    outcome = made[name].apply(documents())

    assert outcome.table.num_rows == 0
    assert len(outcome.keep) == len(outcome.changed) == 0


@pytest.mark.parametrize("name", [name for name in PARAMS if name != "empty_answers"])
def test_a_very_long_text_is_worked_on(made: dict[str, Any], name: str) -> None:
    text = "word 中 <b>x</b> 12 https://a.org `c` " * 60_000

    assert len(made[name].apply(documents(text)).keep) == 1


@given(st.text(alphabet="a `~\n", max_size=60))
def test_code_is_spared_in_columns_as_it_is_in_one_text(text: str) -> None:
    import polars as pl

    one = outside_code(text, lambda part: part.replace("a", "b"))
    column = outside_code_of_all(pl.Series([text]), lambda parts: parts.str.replace_all("a", "b"))

    assert column[0] == one


def test_unchanged_rows_are_not_said_to_be_changed(tmp_path: Path) -> None:
    outcome = run("normalise_text", documents("plain text", "two  spaces"))

    assert np.flatnonzero(outcome.changed).tolist() == [1]
