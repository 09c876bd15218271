"""The step that converts, as a pipeline sees it."""

from typing import Any

import pyarrow as pa
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_data.catalogue import describe, find_operator
from trellis_data.formats.operator import Convert, ConvertParams
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem

UNKNOWN = Layout(DataFormat.UNKNOWN)
TURNS = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]


def step(**params: Any) -> Convert:
    return Convert(ConvertParams(**params), Context())


def test_the_step_is_in_the_catalogue_with_texts_in_both_languages() -> None:
    found = describe(find_operator("convert"))

    assert found["group"] == "convert"
    assert found["title"]["zh"]
    assert set(found["params_schema"]["properties"]) == {"target", "source", "columns", "answer"}


def test_unconvertible_rows_are_dropped_with_their_reasons() -> None:
    table = pa.table({"question": ["a", "b", "c"], "answer": ["#### 1", "none", "#### 3"], "id": [1, 2, 3]})
    batch = Batch(table, Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "answer"}))
    convert = step(target="verl-rl", answer="gsm8k")

    outcome = convert.apply(batch)

    assert outcome.keep.tolist() == [True, False, True]
    assert outcome.reasons == {1: "no_final_answer"}
    assert outcome.table["id"].to_pylist() == [1, 3]
    assert outcome.table.schema.equals(convert.schema_after(table.schema))
    assert convert.layout_after(batch.layout).format is DataFormat.VERL_RL


def test_rows_of_unknown_format_are_read_as_what_they_look_like() -> None:
    table = pa.Table.from_pylist([{"conversations": TURNS}])

    outcome = step(target="messages").apply(Batch(table, UNKNOWN))

    assert outcome.table.to_pylist() == [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    ]


def test_a_pair_becomes_two_rows_that_know_where_they_come_from() -> None:
    table = pa.table({"prompt": ["p"], "chosen": ["c"], "rejected": ["r"]})

    outcome = step(target="unpaired-preference").apply(Batch(table, UNKNOWN))

    assert outcome.sources is not None
    assert outcome.sources.tolist() == [0, 0]
    assert outcome.counts == {"rows_added": 1}


def test_columns_can_be_named() -> None:
    table = pa.table({"ask": ["p"], "reply": ["c"]})
    convert = step(source="prompt-answer", columns={"prompt": "ask", "answer": "reply"}, target="alpaca")

    convert.check(table.schema, UNKNOWN)

    assert convert.apply(Batch(table, UNKNOWN)).table["instruction"].to_pylist() == ["p"]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({}, "format_unknown"),
        ({"source": "prompt-answer", "columns": {"prompt": "nowhere"}}, "column_missing"),
    ],
)
def test_rows_that_cannot_be_read_are_refused_before_the_run(params: dict[str, Any], code: str) -> None:
    with pytest.raises(OperatorProblem) as caught:
        step(**params).check(pa.schema([("a", pa.int64())]), UNKNOWN)

    assert caught.value.code == code
