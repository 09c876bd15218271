"""The conversion in columns makes of every row what the one row by row makes of it."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_data.formats import convert as module
from trellis_data.formats.convert import Converter
from trellis_data.formats.shapes import Reading, Shape

TEXT = st.sampled_from(
    ["", " ", "\x1f", "1+1?", "你好", "so #### 2", r"\boxed{a{b}c}", "a\n\nb", "b", "\u200b", "x" * 40]
)
MAYBE = st.none() | TEXT
ROLES = st.sampled_from(["system", "user", "assistant", "assistant", "tool", "developer", "robot"])
MESSAGE = st.fixed_dictionaries({"role": ROLES, "content": MAYBE})
USUAL = st.tuples(TEXT, TEXT).map(
    lambda pair: [{"role": "user", "content": pair[0]}, {"role": "assistant", "content": pair[1]}]
)
CHAT = st.none() | st.lists(MESSAGE, max_size=4) | USUAL
SPEAKER = st.sampled_from(["human", "gpt", "gpt", "system", "user", "observation", "function_call", "robot"])
TURNS = st.none() | st.lists(st.fixed_dictionaries({"from": SPEAKER, "value": MAYBE}), max_size=4)
NAMED = st.none() | st.fixed_dictionaries(
    {"role": ROLES, "content": MAYBE, "name": MAYBE, "tool_call_id": st.none()}
)

_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
_TURNS = pa.list_(pa.struct([("from", pa.string()), ("value", pa.string())]))
_NAMED = pa.list_(pa.struct([(name, pa.string()) for name in ("role", "content", "name", "tool_call_id")]))
_REWARD = pa.struct([("style", pa.string()), ("ground_truth", pa.string())])
_INFO = pa.struct([("question", pa.string()), ("answer", pa.string())])

EXTRACTIONS = ["whole", "auto", "gsm8k", "boxed", None]
#: Per source: its columns' types and what may stand in them.
SOURCES: dict[str, tuple[Shape, dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]]] = {
    "alpaca": (
        Shape.ALPACA,
        {name: (pa.string(), MAYBE) for name in ("instruction", "input", "output", "system", "topic")},
    ),
    "question": (Shape.PROMPT_ANSWER, {"question": (pa.string(), MAYBE), "answer": (pa.string(), MAYBE)}),
    "number": (
        Shape.PROMPT_ANSWER,
        {"prompt": (pa.string(), MAYBE), "answer": (pa.int64(), st.none() | st.integers(-9, 9))},
    ),
    "decimal": (
        Shape.PROMPT_ANSWER,
        {"prompt": (pa.string(), MAYBE), "answer": (pa.float64(), st.none() | st.floats())},
    ),
    "asked-in-messages": (Shape.PROMPT_ANSWER, {"prompt": (_MESSAGES, CHAT), "answer": (pa.string(), MAYBE)}),
    "messages": (Shape.MESSAGES, {"messages": (_MESSAGES, CHAT), "input": (pa.string(), MAYBE)}),
    "named-messages": (Shape.MESSAGES, {"messages": (_NAMED, st.lists(NAMED, max_size=3))}),
    "labelled-messages": (
        Shape.MESSAGES,
        {"messages": (_MESSAGES, CHAT), "label": (pa.bool_(), st.none() | st.booleans())},
    ),
    "sharegpt": (Shape.SHAREGPT, {"conversations": (_TURNS, TURNS), "system": (pa.string(), MAYBE)}),
    "texts": (
        Shape.PREFERENCE,
        {name: (pa.string(), MAYBE) for name in ("prompt", "chosen", "rejected", "system")},
    ),
    "chats": (
        Shape.PREFERENCE,
        {"prompt": (pa.string(), MAYBE), "chosen": (_MESSAGES, CHAT), "rejected": (_MESSAGES, CHAT)},
    ),
    "implicit": (Shape.PREFERENCE, {"chosen": (_MESSAGES, CHAT), "rejected": (_MESSAGES, CHAT)}),
    "labelled": (
        Shape.UNPAIRED_PREFERENCE,
        {
            "prompt": (pa.string(), MAYBE),
            "completion": (pa.string(), MAYBE),
            "label": (pa.bool_(), st.none() | st.booleans()),
        },
    ),
    "verl": (
        Shape.VERL_RL,
        {
            "data_source": (pa.string(), TEXT),
            "prompt": (_MESSAGES, CHAT),
            "reward_model": (
                _REWARD,
                st.none() | st.fixed_dictionaries({"style": TEXT, "ground_truth": MAYBE}),
            ),
            "extra_info": (_INFO, st.none() | st.fixed_dictionaries({"question": TEXT, "answer": MAYBE})),
        },
    ),
    "text": (Shape.TEXT, {"text": (pa.string(), MAYBE)}),
}


@st.composite
def source_tables(draw: st.DrawFn, name: str) -> pa.Table:
    columns = SOURCES[name][1]
    count = draw(st.integers(1, 6))
    return pa.table(
        {
            column: pa.array(draw(st.lists(values, min_size=count, max_size=count)), kind)
            for column, (kind, values) in columns.items()
        }
    )


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), target=st.sampled_from(Shape), extraction=st.sampled_from(EXTRACTIONS))
def test_both_ways_give_the_same(name: str, data: st.DataObject, target: Shape, extraction: Any) -> None:
    table = data.draw(source_tables(name))
    converter = Converter(table.schema, Reading(SOURCES[name][0]), target, extraction=extraction)

    quick = converter.convert(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "convert_columns", lambda *_: None)
        slow = converter.convert(table)

    assert quick.table.to_pylist() == slow.table.to_pylist()
    assert quick.table.schema.equals(slow.table.schema)
    assert quick.sources.tolist() == slow.sources.tolist()
    assert quick.problems == slow.problems
    assert set(quick.sources.tolist()) | set(quick.problems) == set(range(len(table)))
    quick.table.validate(full=True)


def test_an_empty_answer_is_none_to_check_against_in_both_ways() -> None:
    turns = [{"role": "user", "content": "q"}, {"role": "assistant", "content": " "}]
    table = pa.table({"messages": pa.array([turns], _MESSAGES)})

    made = Converter(table.schema, Reading(Shape.MESSAGES), Shape.VERL_RL, extraction="whole").convert(table)

    assert made.table.num_rows == 0
    assert made.problems[0].code == "no_final_answer"
    assert made.problems[0].message == "the answer has no final answer"


def test_common_rows_never_take_the_slow_way() -> None:
    rows = {"instruction": ["Add."] * 5, "input": ["1 and 1", "", None, "2", "3"], "output": ["2"] * 5}
    converter = Converter(pa.table(rows).schema, Reading(Shape.ALPACA), Shape.MESSAGES)
    converter._rowwise.convert = lambda row: pytest.fail(f"{row} took the slow way")  # type: ignore[method-assign]

    assert converter.convert(pa.table(rows)).table.num_rows == 5
