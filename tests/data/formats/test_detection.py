"""Formats are found by columns and values, with how sure that is and why."""

from typing import Any

import pyarrow as pa
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_data.formats.detection import detect
from trellis_data.formats.shapes import Shape

CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
ROWS: dict[Shape, dict[str, Any]] = {
    Shape.ALPACA: {"instruction": "i", "input": "", "output": "o"},
    Shape.SHAREGPT: {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
    Shape.MESSAGES: {"messages": CHAT},
    Shape.PROMPT_ANSWER: {"question": "q", "answer": "a"},
    Shape.PREFERENCE: {"prompt": "p", "chosen": "c", "rejected": "r"},
    Shape.UNPAIRED_PREFERENCE: {"prompt": "p", "completion": "c", "label": True},
    Shape.VERL_RL: {"data_source": "d", "prompt": CHAT[:1], "reward_model": {"ground_truth": "a"}},
    Shape.TEXT: {"text": "t"},
}


@pytest.mark.parametrize("shape", ROWS)
def test_every_format_is_found_first_among_its_candidates(shape: Shape) -> None:
    best = detect(pa.Table.from_pylist([ROWS[shape]] * 10))[0]

    assert best.shape is shape
    assert best.confidence >= 0.7
    assert best.reasons[0]
    assert best.reasons[1] == "10 of the first 10 rows match."


def test_several_formats_are_ranked_by_how_sure_they_are() -> None:
    table = pa.Table.from_pylist([{**ROWS[Shape.MESSAGES], **ROWS[Shape.TEXT]}] * 4)

    assert [each.shape for each in detect(table)] == [Shape.MESSAGES, Shape.TEXT]


def test_rows_that_cannot_be_read_lower_the_confidence_and_are_named() -> None:
    rows = [{"messages": CHAT}] * 3 + [{"messages": CHAT[:1]}]

    (found,) = detect(pa.Table.from_pylist(rows))

    assert found.confidence == pytest.approx(0.97 * 0.75, abs=0.001)
    assert found.reasons[-1] == "Mismatch: 'messages' has no assistant turn."


def test_sharegpt_is_told_from_messages_and_no_trainer_reads_it_as_it_is() -> None:
    (found,) = detect(pa.Table.from_pylist([ROWS[Shape.SHAREGPT]]))

    assert found.columns == {"messages": "conversations"}
    assert found.format is DataFormat.UNKNOWN


@pytest.mark.parametrize("row", [{"a": 1}, {"text": 5}, {"messages": ["text"]}, {"prompt": "alone"}])
def test_what_is_no_format_has_no_candidates(row: dict[str, Any]) -> None:
    assert detect(pa.Table.from_pylist([row])) == []
