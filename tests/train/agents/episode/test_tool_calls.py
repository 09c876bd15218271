"""Tool calls in a model's text: every one in order, and why one cannot be understood."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_train.agents.episode.tool_calls import (
    BrokenCall,
    CallFault,
    ParsedCall,
    parse_tool_calls,
    render_tool_call,
)

ADD = render_tool_call("add", {"a": 1})


def test_all_calls_are_read_in_order_with_duplicates() -> None:
    text = f"First.{ADD}then{ADD}\n{render_tool_call('sub', {})} done"

    parsed = parse_tool_calls(text)

    assert [call.name for call in parsed.calls] == ["add", "add", "sub"]
    assert parsed.around == ("First.", "then", "\n", " done")
    assert parsed.prose == "First.\nthen\ndone"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('<tool_call>{"name": "a", "arguments": {}}', CallFault.UNCLOSED),
        ("<tool_call>", CallFault.UNCLOSED),
        ('<tool_call>{"name": "a",}</tool_call>', CallFault.BAD_JSON),
        ('<tool_call>{"name": "a", "arguments": {"x": NaN}}</tool_call>', CallFault.BAD_JSON),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", CallFault.BAD_JSON),
        ('<tool_call>{"name": "a", "arguments": {}} {}</tool_call>', CallFault.BAD_JSON),
        ("<tool_call>[1]</tool_call>", CallFault.NOT_AN_OBJECT),
        ('<tool_call>{"arguments": {}}</tool_call>', CallFault.NO_NAME),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', CallFault.NO_NAME),
        ('<tool_call>{"name": "a"}</tool_call>', CallFault.BAD_ARGUMENTS),
        ('<tool_call>{"name": "a", "arguments": "x"}</tool_call>', CallFault.BAD_ARGUMENTS),
    ],
)
def test_each_fault_has_its_code(text: str, fault: CallFault) -> None:
    (item,) = parse_tool_calls(text).items

    assert isinstance(item, BrokenCall)
    assert item.fault is fault


def test_a_call_after_a_broken_one_is_still_read() -> None:
    parsed = parse_tool_calls(f"<tool_call>{{oops {ADD}<tool_call>nope</tool_call>{ADD}")

    assert [type(item) for item in parsed.items] == [BrokenCall, ParsedCall, BrokenCall, ParsedCall]


def test_a_closing_tag_within_an_argument_ends_nothing() -> None:
    arguments = {"sql": "SELECT '</tool_call>'"}

    (call,) = parse_tool_calls(render_tool_call("search", arguments)).calls

    assert call.arguments == arguments


def test_closing_tags_that_close_nothing_are_counted() -> None:
    assert parse_tool_calls(f"</tool_call>{ADD}</tool_call>").stray_closings == 2


PIECES = ["<tool_call>", "</tool_call>", '{"name":"a","arguments":{}}', "x", "{", " "]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_no_text_is_lost_and_nothing_raises(text: str) -> None:
    parsed = parse_tool_calls(text)

    pieces = [parsed.around[0]]
    for item, after in zip(parsed.items, parsed.around[1:], strict=True):
        pieces += [item.raw, after]
    assert "".join(pieces) == text


@given(st.text(min_size=1), st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_what_is_rendered_is_read_back(name: str, arguments: dict[str, object]) -> None:
    (call,) = parse_tool_calls(render_tool_call(name, arguments)).calls

    assert (call.name, call.arguments) == (name, json.loads(json.dumps(arguments)))
