"""Conversations with calls of tools, brought into the form that trainers read."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_recipes.data.row_values import BadRow

ADD = {
    "type": "function",
    "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}},
}
ASKED = {"role": "user", "content": "1 + 2?"}


def row(call: object, **further: object) -> dict:
    turns = [ASKED, {"role": "assistant", "content": None, "tool_calls": [call]}]
    return {
        "messages": [*turns, {"role": "tool", "content": "3"}, {"role": "assistant", "content": "3."}],
        **further,
    }


def convert(given: dict) -> list[dict]:
    (converted,) = choose_conversion(DataFormat.MESSAGES, DataFormat.MESSAGES, {})(given, Place(0, "train"))
    return converted["messages"]


def test_a_call_is_written_into_its_turn() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}

    messages = convert(row(call))

    assert messages[1] == {
        "role": "assistant",
        "content": '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>',
    }
    assert messages[2:] == [{"role": "tool", "content": "3"}, {"role": "assistant", "content": "3."}]


@pytest.mark.parametrize(
    "tools", [[ADD], [ADD["function"]], json.dumps([ADD])], ids=["envelope", "bare", "text"]
)
def test_the_tools_are_told_by_the_system(tools: object) -> None:
    given = row({"name": "add", "arguments": {}}, tools=tools)
    given["messages"].insert(0, {"role": "system", "content": "Be brief."})

    system, *rest = convert(given)

    assert system["content"].startswith("Be brief.\n\n# Tools\n")
    assert json.dumps(ADD) in system["content"]
    assert [message["role"] for message in rest] == ["user", "assistant", "tool", "assistant"]


def test_calls_survive_a_parquet_file(tmp_path: Path) -> None:
    """Parquet gives each call the arguments of all others; as JSON text they keep to themselves."""
    one = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    other = {"type": "function", "function": {"name": "look", "arguments": {"b": {"c": [2]}}}}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([row(one, tools=[ADD]), row(other, tools=[{"name": "look"}])]), path)

    turns = [convert(read)[2]["content"] for read in pq.read_table(path).to_pylist()]

    assert '{"name": "add", "arguments": {"a": 1}}' in turns[0]
    assert '{"name": "look", "arguments": {"b": {"c": [2]}}}' in turns[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (row({"function": {"name": "add", "arguments": "{1"}}), r"message 2 .* \(add\) are not JSON"),
        (row({"function": {"name": "add", "arguments": "[1]"}}), r"\(add\) are not an object"),
        (row({"function": {"arguments": "{}"}}), "has no function name"),
        (row("add(1, 2)"), "has no function name"),
        (row({"name": "add"}, tools="[{"), "'tools': its tools are not JSON"),
        (row({"name": "add"}, tools=[{"description": "?"}]), "tool 1 has no name"),
    ],
)
def test_calls_that_cannot_be_read_are_told(given: dict, said: str) -> None:
    with pytest.raises(BadRow, match=said):
        convert(given)
