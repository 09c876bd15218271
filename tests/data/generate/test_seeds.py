"""What rows of any format ask and answer."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_data.generate.seeds import Seed, read_seeds
from trellis_data.layout import Layout
from trellis_data.operator import OperatorProblem

USER = {"role": "user", "content": "Why?"}
SAID = {"role": "assistant", "content": "So."}


def seed_of(row: dict[str, Any], layout: Layout, folder: Path) -> Seed | int:
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    return next(read_seeds([path], layout))


@pytest.mark.parametrize(
    ("row", "layout", "asked", "reference"),
    [
        (
            {"instruction": "Why", "input": "this?", "output": "So.", "system": "Short."},
            Layout(
                DataFormat.PROMPT_ANSWER,
                {"prompt": "instruction", "input": "input", "answer": "output", "system": "system"},
            ),
            [("system", "Short."), ("user", "Why\n\nthis?")],
            "So.",
        ),
        (
            {"messages": [USER, SAID, USER, SAID]},
            Layout(DataFormat.MESSAGES, {"messages": "messages"}),
            [("user", "Why?"), ("assistant", "So."), ("user", "Why?")],
            "So.",
        ),
        (
            {"data_source": "x", "prompt": [USER], "reward_model": {"style": "rule", "ground_truth": "7"}},
            Layout(
                DataFormat.VERL_RL,
                {"data_source": "data_source", "prompt": "prompt", "reward_model": "reward_model"},
            ),
            [("user", "Why?")],
            "7",
        ),
        (
            {"chosen": [USER, SAID], "rejected": [USER, {**SAID, "content": "No."}]},
            Layout(DataFormat.PREFERENCE, {"chosen": "chosen", "rejected": "rejected"}),
            [("user", "Why?")],
            "So.",
        ),
        (
            {"question": "Why?", "answer": 7},
            Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "answer"}),
            [("user", "Why?")],
            "7",
        ),
        ({"question": "Why?"}, Layout(DataFormat.UNKNOWN), [("user", "Why?")], None),
        ({"text": "Why?"}, Layout(DataFormat.TEXT, {"text": "text"}), [("user", "Why?")], None),
    ],
)
def test_rows_of_every_format_are_seeds(
    row: dict[str, Any], layout: Layout, asked: list[tuple[str, str]], reference: str | None, tmp_path: Path
) -> None:
    seed = seed_of(row, layout, tmp_path)

    assert isinstance(seed, Seed)
    assert [tuple(turn) for turn in seed.prompt] == asked
    assert seed.reference == reference


@pytest.mark.parametrize("messages", [[], [SAID], [{"role": "user", "content": None}], None])
def test_a_row_that_asks_nothing_is_told_by_its_position(messages: Any, tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"messages": pa.array([[USER], messages], kind)}), path)

    found = list(read_seeds([path], Layout(DataFormat.MESSAGES, {"messages": "messages"})))

    assert found[1] == 1


def test_rows_without_any_prompt_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorProblem) as caught:
        seed_of({"number": 1}, Layout(DataFormat.UNKNOWN), tmp_path)

    assert caught.value.code == "column_missing"
