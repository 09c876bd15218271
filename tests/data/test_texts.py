"""The flat view on the texts of a batch, and the way back."""

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Batch, Layout
from trellis_data.row_texts import any_in_row, row_texts, texts_of, with_texts

CHAT = Layout(DataFormat.MESSAGES, {"messages": "messages"})
QUESTIONS = Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "answer"})
MESSAGE = pa.struct({"role": pa.string(), "content": pa.string(), "name": pa.string()})


def chat(*rows: list[tuple[str, str | None]] | None) -> Batch:
    values = [
        None if row is None else [{"role": role, "content": text, "name": None} for role, text in row]
        for row in rows
    ]
    return Batch(pa.table({"id": range(len(rows)), "messages": pa.array(values, pa.list_(MESSAGE))}), CHAT)


def test_turns_of_conversations_are_texts_with_their_place() -> None:
    batch = chat([("user", "a"), ("assistant", "b")], None, [], [("user", None), ("assistant", "c")])

    frame = texts_of(batch)

    assert frame.select("row", "turn", "speaker", "text").rows() == [
        (0, 0, "user", "a"),
        (0, 1, "assistant", "b"),
        (3, 1, "assistant", "c"),
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("prompt", ["s", "a", "c"]),
        ("answer", ["b", "d"]),
        ("user", ["a", "c"]),
        ("assistant", ["b", "d"]),
        ("system", ["s"]),
    ],
)
def test_parts_of_a_conversation_can_be_asked_for(where: Any, expected: list[str]) -> None:
    turns = [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")]

    assert texts_of(chat(turns), where)["text"].to_list() == expected


@pytest.mark.parametrize(("where", "expected"), [("prompt", ["q"]), ("answer", ["a"]), ("system", [])])
def test_parts_of_plain_columns_can_be_asked_for(where: Any, expected: list[str]) -> None:
    batch = Batch(pa.table({"question": ["q"], "answer": ["a"], "other": ["o"]}), QUESTIONS)

    assert texts_of(batch, where)["text"].to_list() == expected


def test_the_order_in_which_roles_are_named_does_not_matter() -> None:
    table = pa.table({"answer": ["a"], "question": ["q"]})
    named = {"answer": "answer", "prompt": "question"}

    joined = row_texts(Batch(table, Layout(DataFormat.PROMPT_ANSWER, named)))

    assert joined.to_list() == ["q\na"] == row_texts(Batch(table, QUESTIONS)).to_list()


def test_without_a_format_every_text_counts() -> None:
    table = pa.table({"one": ["x"], "n": [1], "two": ["y"]})

    assert texts_of(Batch(table, Layout(DataFormat.UNKNOWN)))["text"].to_list() == ["x", "y"]


def test_a_row_is_hit_where_one_of_its_texts_is() -> None:
    batch = chat([("user", "a"), ("assistant", "x")], [("user", "b")], [("user", "x")])
    frame = texts_of(batch)

    assert any_in_row(batch, frame, frame["text"] == "x").tolist() == [True, False, True]


def test_the_texts_of_a_row_join_in_order() -> None:
    batch = chat([("user", "a"), ("assistant", "b")], None)

    assert row_texts(batch).to_list() == ["a\nb", ""]


_TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.none() | st.text(max_size=5)), max_size=4
)


@given(st.lists(st.none() | _TURNS, min_size=1, max_size=6), st.sampled_from(["all", "prompt", "answer"]))
def test_new_texts_go_where_the_old_ones_stood(rows: list[Any], where: Any) -> None:
    batch = chat(*rows)
    frame = texts_of(batch, where)

    table = with_texts(batch, frame, frame["text"] + pl.lit("!"))

    assert table.schema == batch.table.schema
    asked = set(frame.select("row", "turn").rows())
    for index, (before, after) in enumerate(zip(batch.table.to_pylist(), table.to_pylist(), strict=True)):
        assert (before["messages"] is None) == (after["messages"] is None)
        for turn, (old, new) in enumerate(
            zip(before["messages"] or [], after["messages"] or [], strict=True)
        ):
            suffix = "!" if (index, turn) in asked else ""
            assert new["role"] == old["role"]
            assert new["content"] == (None if old["content"] is None else old["content"] + suffix)


def test_chunks_of_a_column_are_not_joined_as_together_they_may_be_more_than_one_array_holds() -> None:
    first = chat([("user", "a"), ("assistant", "b")], None, []).table
    second = chat([("user", "c")], [("user", None), ("assistant", "d")]).table
    table = pa.concat_tables([first, second.slice(0, 0), second]).append_column(
        "note", pa.chunked_array([["n0", "n1"], ["n2", None, "n4"]])
    )
    batch = Batch(table, Layout(DataFormat.UNKNOWN))

    frame = texts_of(batch)
    changed = with_texts(batch, frame, frame["text"].str.to_uppercase())

    assert frame.filter(frame["field"] == "messages").select("row", "turn", "text").rows() == [
        (0, 0, "a"),
        (0, 1, "b"),
        (3, 0, "c"),
        (4, 1, "d"),
    ]
    assert changed.column("note").to_pylist() == ["N0", "N1", "N2", None, "N4"]
    assert [row and [turn["content"] for turn in row] for row in changed.column("messages").to_pylist()] == [
        ["A", "B"], None, [], ["C"], [None, "D"],
    ]  # fmt: skip
    assert [len(chunk) for chunk in changed.column("note").chunks] == [2, 3]
    assert changed.column("messages").num_chunks > 1


def sharegpt(*rows: list[tuple[str, str | None]] | None) -> Batch:
    kind = pa.list_(pa.struct({"from": pa.string(), "value": pa.string(), "weight": pa.int64()}))
    values = [row and [{"from": who, "value": text, "weight": 1} for who, text in row] for row in rows]
    columns = {"messages": "conversations"}
    return Batch(pa.table({"conversations": pa.array(values, kind)}), Layout(DataFormat.UNKNOWN, columns))


def test_turns_of_sharegpt_are_texts_whose_speakers_have_the_names_of_messages() -> None:
    batch = sharegpt(
        [("system", "s"), ("human", "q"), ("function_call", "{}"), ("observation", "o"), ("gpt", "a")],
        None,
        [("human", None), ("bing", "b")],
    )

    assert texts_of(batch).select("row", "turn", "speaker", "text").rows() == [
        (0, 0, "system", "s"),
        (0, 1, "user", "q"),
        (0, 3, "tool", "o"),
        (0, 4, "assistant", "a"),
        (2, 1, "assistant", "b"),
    ]
    assert texts_of(batch, "answer")["text"].to_list() == ["a", "b"]
    assert texts_of(batch, "user")["text"].to_list() == ["q"]


def test_new_texts_of_sharegpt_are_stored_as_the_old_ones_were() -> None:
    batch = sharegpt([("human", "q"), ("function_call", "{}"), ("gpt", "a")], None)
    frame = texts_of(batch)

    table = with_texts(batch, frame, frame["text"].str.to_uppercase())

    assert table.schema.equals(batch.table.schema)
    assert table.to_pylist() == [
        {
            "conversations": [
                {"from": "human", "value": "Q", "weight": 1},
                {"from": "function_call", "value": "{}", "weight": 1},
                {"from": "gpt", "value": "A", "weight": 1},
            ]
        },
        {"conversations": None},
    ]
