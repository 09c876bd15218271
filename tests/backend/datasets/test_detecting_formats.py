"""The training format is recognised by the columns, with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_api.datasets.intake.convert import Converted, convert
from trellis_api.datasets.intake.problems import BadRows
from trellis_contracts.recipe import DataFormat

TURNS = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]


def convert_row(folder: Path, *rows: dict[str, Any]) -> Converted:
    (folder / "upload").write_text("\n".join(json.dumps(row) for row in rows))
    return convert(folder / "upload", "rows.jsonl", folder / "data.parquet")


@pytest.mark.parametrize(
    ("row", "expected", "columns"),
    [
        (
            {"question": "q", "answer": "a"},
            DataFormat.PROMPT_ANSWER,
            {"prompt": "question", "answer": "answer"},
        ),
        (
            {"prompt": "q", "completion": 4},
            DataFormat.PROMPT_ANSWER,
            {"prompt": "prompt", "answer": "completion"},
        ),
        (
            {"instruction": "i", "input": "x", "output": "o"},
            DataFormat.PROMPT_ANSWER,
            {"prompt": "instruction", "answer": "output"},
        ),
        (
            {"problem": "p", "solution": "long", "answer": "short"},
            DataFormat.PROMPT_ANSWER,
            {"prompt": "problem", "answer": "answer"},
        ),
        (
            {"prompt": TURNS[:1], "answer": "a"},
            DataFormat.PROMPT_ANSWER,
            {"prompt": "prompt", "answer": "answer"},
        ),
        ({"messages": TURNS}, DataFormat.MESSAGES, {"messages": "messages"}),
        (
            {"prompt": "q", "chosen": "a", "rejected": "b"},
            DataFormat.PREFERENCE,
            {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"},
        ),
        (
            {"chosen": TURNS, "rejected": TURNS},
            DataFormat.PREFERENCE,
            {"chosen": "chosen", "rejected": "rejected"},
        ),
        (
            {"prompt": "q", "completion": "a", "label": True},
            DataFormat.UNPAIRED_PREFERENCE,
            {"prompt": "prompt", "completion": "completion", "label": "label"},
        ),
        (
            {"question": TURNS[:1], "completion": TURNS[1:], "label": 1},
            DataFormat.UNPAIRED_PREFERENCE,
            {"prompt": "question", "completion": "completion", "label": "label"},
        ),
        (
            {"question": "q", "answer": "a", "label": 3},
            DataFormat.PROMPT_ANSWER,
            {"prompt": "question", "answer": "answer"},
        ),
        (
            {"data_source": "gsm8k", "prompt": TURNS[:1], "reward_model": {"ground_truth": "4"}},
            DataFormat.VERL_RL,
            {"data_source": "data_source", "prompt": "prompt", "reward_model": "reward_model"},
        ),
        ({"text": "plain"}, DataFormat.TEXT, {"text": "text"}),
        ({"title": "t", "body": "b"}, DataFormat.UNKNOWN, {}),
        ({"messages": "a text"}, DataFormat.UNKNOWN, {}),
    ],
)
def test_columns_decide_the_format(
    row: dict[str, Any], expected: DataFormat, columns: dict[str, str], tmp_path: Path
) -> None:
    detection = convert_row(tmp_path, row).detection

    assert (detection.format, detection.columns) == (expected, columns)
    assert detection.reason.endswith(".")


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({"question": "q", "label": "a"}, "no column is the answer"),
        ({"topic": "q", "response": "a"}, "no column is the prompt"),
        (
            {"prompt": {"x": 1}, "answer": "a"},
            "Column prompt is object{x: integer}: neither text nor messages.",
        ),
        ({"prompt": "q", "answer": True}, "Column answer is boolean: neither text nor a number."),
        ({"conversations": [{"from": "human", "value": "q"}]}, "ShareGPT"),
        ({"messages": "a text"}, "not a list of objects with role and content"),
        ({"chosen": "a", "rejected": "b"}, "no column is the prompt"),
    ],
)
def test_an_unknown_format_says_what_is_missing(row: dict[str, Any], part: str, tmp_path: Path) -> None:
    converted = convert_row(tmp_path, row)

    assert part in converted.detection.reason
    assert [warning["code"] for warning in converted.warnings] == ["format_unknown"]


def test_empty_answers_are_counted_as_a_warning(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "answer": "a"}, {"prompt": "q", "answer": ""}, {"prompt": "q", "answer": " \n"}]

    converted = convert_row(tmp_path, *rows)

    assert converted.warnings == [
        {
            "code": "empty_values",
            "message": "2 rows have an empty 'answer'; training refuses such rows.",
            "column": "answer",
            "row_count": 2,
        }
    ]


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"prompt": "q", "completion": "a", "label": 2}, "label", "2 is neither 0 nor 1"),
        ({"prompt": "q", "completion": "a", "label": None}, "label", "missing or null"),
        ({"prompt": "q", "completion": None, "label": 1}, "completion", "missing or null"),
    ],
)
def test_a_value_that_breaks_unpaired_preferences_is_named(
    row: dict[str, Any], column: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRows) as caught:
        convert_row(tmp_path, {"prompt": "q", "completion": "a", "label": 1}, row)

    (problem,) = caught.value.problems
    assert (problem.row, problem.column, problem.reason) == (2, column, reason)


def test_a_pair_that_lacks_a_side_is_named(tmp_path: Path) -> None:
    pair = {"prompt": "q", "chosen": "a", "rejected": "b"}

    with pytest.raises(BadRows, match="column 'rejected': missing or null"):
        convert_row(tmp_path, pair, {**pair, "rejected": None})
