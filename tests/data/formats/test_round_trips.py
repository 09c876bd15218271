"""There and back again: nothing is lost on the way, and what has no place is named."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_data.formats.convert import Converted, Converter
from trellis_data.formats.shapes import Reading, Shape
from trellis_data.reading.column_types import ordered_like

EXAMPLES = settings(max_examples=80, deadline=None)
WORD = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=10)
SYSTEM = st.none() | WORD


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        pa.Table.from_pylist(rows).columns, schema=pa.schema(list(ordered_like(pa.infer_type(rows), rows)))
    )


def convert(table: pa.Table, source: Shape, target: Shape, **options: Any) -> Converted:
    return Converter(table.schema, Reading(source), target, **options).convert(table)


def there_and_back(rows: list[dict[str, Any]], shape: Shape, other: Shape) -> list[dict[str, Any]]:
    there = convert(table_of(rows), shape, other)
    assert not there.problems
    back = convert(there.table, other, shape)
    assert not back.problems
    return [without_nulls(row) for row in back.table.to_pylist()]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def chats(*, is_single: bool = False) -> st.SearchStrategy[list[dict[str, str]]]:
    @st.composite
    def chat(draw: st.DrawFn) -> list[dict[str, str]]:
        system = draw(SYSTEM)
        turns = [{"role": "system", "content": system}] if system else []
        for _ in range(1 if is_single else draw(st.integers(1, 3))):
            turns += [{"role": "user", "content": draw(WORD)}, {"role": "assistant", "content": draw(WORD)}]
        return turns

    return chat()


def rows_with(**columns: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.fixed_dictionaries({**columns, "topic": WORD}), min_size=1, max_size=5)


@EXAMPLES
@given(
    rows=rows_with(instruction=WORD, input=WORD | st.just(""), output=WORD, system=WORD),
    other=st.sampled_from(
        [Shape.MESSAGES, Shape.SHAREGPT, Shape.PROMPT_ANSWER, Shape.VERL_RL, Shape.VERL_SFT]
    ),
)
def test_alpaca_comes_back(rows: list[dict[str, Any]], other: Shape) -> None:
    found = there_and_back(rows, Shape.ALPACA, other)

    verl = {"data_source", "ability", "reward_model", "extra_info"}
    assert [{name: value for name, value in row.items() if name not in verl} for row in found] == rows


@EXAMPLES
@given(
    rows=rows_with(messages=chats()), other=st.sampled_from([Shape.SHAREGPT, Shape.VERL_RL, Shape.VERL_SFT])
)
def test_conversations_come_back(rows: list[dict[str, Any]], other: Shape) -> None:
    found = there_and_back(rows, Shape.MESSAGES, other)

    assert [{"messages": row["messages"], "topic": row["topic"]} for row in found] == rows


@EXAMPLES
@given(
    rows=rows_with(messages=chats(is_single=True)), other=st.sampled_from([Shape.ALPACA, Shape.PROMPT_ANSWER])
)
def test_single_questions_come_back(rows: list[dict[str, Any]], other: Shape) -> None:
    found = there_and_back(rows, Shape.MESSAGES, other)

    assert [{"messages": row["messages"], "topic": row["topic"]} for row in found] == rows


@EXAMPLES
@given(
    rows=rows_with(prompt=chats(is_single=True).map(lambda chat: chat[:-1]), answers=st.tuples(WORD, WORD))
)
def test_pairs_come_back_from_conversations(rows: list[dict[str, Any]]) -> None:
    pairs = [
        {
            "prompt": row["prompt"],
            "chosen": [{"role": "assistant", "content": row["answers"][0]}],
            "rejected": [{"role": "assistant", "content": row["answers"][1]}],
        }
        for row in rows
    ]

    assert there_and_back(pairs, Shape.PREFERENCE, Shape.MESSAGES) == pairs


@EXAMPLES
@given(answer=WORD, truth=WORD, source=WORD)
def test_verl_rows_come_back_with_all_that_they_hold(answer: str, truth: str, source: str) -> None:
    row = {
        "data_source": source,
        "prompt": [{"role": "user", "content": "1+1?"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"question": "1+1?", "answer": answer, "index": 7, "split": "train"},
    }

    assert there_and_back([row], Shape.VERL_RL, Shape.MESSAGES) == [row]


CALL = {"id": "call_9", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
TOOL_ROW = {
    "messages": [
        {"role": "user", "content": "1+2?", "name": "Ann"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]},
        {"role": "tool", "content": "3", "tool_call_id": "call_9"},
        {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "call_10"}]},
        {"role": "tool", "content": "3", "tool_call_id": "call_10"},
        {"role": "assistant", "content": "3"},
    ],
    "tools": json.dumps([{"type": "function", "function": {"name": "add"}}]),
}


@pytest.mark.parametrize("other", [Shape.SHAREGPT, Shape.VERL_SFT, Shape.VERL_RL])
def test_calls_of_tools_come_back(other: Shape) -> None:
    (found,) = there_and_back([TOOL_ROW], Shape.MESSAGES, other)

    assert found["messages"] == without_nulls(TOOL_ROW["messages"])
    assert found["tools"] == TOOL_ROW["tools"]


def test_sharegpt_calls_are_calls_of_tools() -> None:
    turns = [
        {"from": "human", "value": "1+2?"},
        {"from": "function_call", "value": '{"name": "add", "arguments": {"a": 1}}'},
        {"from": "observation", "value": "3"},
        {"from": "gpt", "value": "3"},
    ]
    made = convert(table_of([{"conversations": turns, "tools": "[]"}]), Shape.SHAREGPT, Shape.MESSAGES)

    messages = made.table["messages"][0].as_py()
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}


def test_texts_in_parts_and_old_calls_are_read() -> None:
    content = [{"type": "text", "text": "1+"}, {"type": "text", "text": "1?"}]
    parts = [
        {"role": "user", "content": content},
        {"role": "assistant", "content": [{"type": "text", "text": "2"}]},
    ]
    old = [
        {"role": "user", "content": "now?", "function_call": None},
        {"role": "assistant", "content": None, "function_call": {"name": "time", "arguments": "{}"}},
    ]

    joined = (
        convert(table_of([{"messages": parts}]), Shape.MESSAGES, Shape.MESSAGES).table["messages"][0].as_py()
    )
    called = (
        convert(table_of([{"messages": old}]), Shape.MESSAGES, Shape.MESSAGES).table["messages"][0].as_py()
    )

    assert [message["content"] for message in joined] == ["1+1?", "2"]
    assert called[1]["tool_calls"][0]["function"] == {"name": "time", "arguments": "{}"}


def test_pairs_become_two_labelled_rows_each() -> None:
    rows = [{"prompt": f"p{n}", "chosen": f"c{n}", "rejected": f"r{n}", "id": n} for n in range(3)]
    rows[1]["chosen"] = "  "

    made = convert(table_of(rows), Shape.PREFERENCE, Shape.UNPAIRED_PREFERENCE)

    assert [(row["completion"][0]["content"], row["label"], row["id"]) for row in made.table.to_pylist()] == [
        ("c0", True, 0),
        ("r0", False, 0),
        ("c2", True, 2),
        ("r2", False, 2),
    ]
    assert made.sources.tolist() == [0, 0, 2, 2]
    assert made.problems[1].code == "empty"


@pytest.mark.parametrize(
    ("row", "source", "target", "code"),
    [
        ({"text": "a"}, Shape.TEXT, Shape.MESSAGES, "no_prompt"),
        ({"prompt": "a", "answer": "b"}, Shape.PROMPT_ANSWER, Shape.PREFERENCE, "no_rejected"),
        ({"prompt": "a", "answer": "b"}, Shape.PROMPT_ANSWER, Shape.UNPAIRED_PREFERENCE, "no_label"),
        (
            {"prompt": "a", "completion": "b", "label": False},
            Shape.UNPAIRED_PREFERENCE,
            Shape.MESSAGES,
            "unwanted_answer",
        ),
        ({"messages": [{"role": "user", "content": "a"}]}, Shape.MESSAGES, Shape.ALPACA, "no_answer"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, Shape.MESSAGES, Shape.VERL_RL, "no_prompt"),
        (TOOL_ROW, Shape.MESSAGES, Shape.ALPACA, "many_turns"),
        (
            {"conversations": [{"from": "robot", "value": "a"}]},
            Shape.SHAREGPT,
            Shape.MESSAGES,
            "unknown_role",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "text": None}]}]},
            Shape.MESSAGES,
            Shape.SHAREGPT,
            "content_not_text",
        ),
    ],
)
def test_what_has_no_place_in_the_target_says_why(row: Any, source: Shape, target: Shape, code: str) -> None:
    made = convert(table_of([row]), source, target)

    assert made.table.num_rows == 0
    assert made.problems[0].code == code
    assert len(made.problems[0].message) > 10


@pytest.mark.parametrize(
    ("solution", "how", "answer"),
    [
        ("2+2=4 #### 4", "gsm8k", "4"),
        (r"so \boxed{\frac{1}{\sqrt{2}}}.", "boxed", r"\frac{1}{\sqrt{2}}"),
        ("just 4", "auto", "just 4"),
        ("2 #### 4", "whole", "2 #### 4"),
        ("no mark", "gsm8k", None),
        ("no box", "boxed", None),
    ],
)
def test_final_answers_are_found(solution: str, how: Any, answer: str | None) -> None:
    table = table_of([{"question": "?", "answer": solution}])

    made = convert(table, Shape.PROMPT_ANSWER, Shape.VERL_RL, extraction=how)
    short = convert(table, Shape.PROMPT_ANSWER, Shape.PROMPT_ANSWER, extraction=how)

    if answer is None:
        assert made.problems[0].code == short.problems[0].code == "no_final_answer"
    else:
        row = made.table.to_pylist()[0]
        assert row["reward_model"]["ground_truth"] == short.table["answer"][0].as_py() == answer
        assert row["extra_info"]["answer"] == solution


def test_a_column_whose_name_the_target_needs_gets_another() -> None:
    table = table_of([{"prompt": "a", "answer": "b", "messages": "mine"}])

    made = convert(table, Shape.PROMPT_ANSWER, Shape.MESSAGES).table

    assert made["source_messages"].to_pylist() == ["mine"]
