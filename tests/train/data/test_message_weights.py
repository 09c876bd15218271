"""Turns with the weight 0: kept when rows are prepared, masked where they are learned from."""

from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest
import torch
from trellis_contracts.recipe import DataFormat
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_recipes.data.row_values import BadRow
from trellis_train.data.message_weights import weigh
from trellis_train.data.prepare import prepare

from .test_prepare import source, spec_for

PLACE = Place(0, "train")


def talk(*weights: int | None) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "user", "content": "?", "weight": None},
            *({"role": "assistant", "content": f"{at}", "weight": each} for at, each in enumerate(weights)),
        ]
    }


def test_prepared_rows_say_which_turns_are_not_learned(tmp_path: Path) -> None:
    data = source(tmp_path, [talk(0, 1), talk(None, None)], DataFormat.MESSAGES)

    made = prepare(spec_for(tmp_path, data, form=DataFormat.MESSAGES))

    rows = pq.read_table(made.train_path).to_pylist()
    assert [[each["weight"] for each in row["messages"]] for row in rows] == [[None, 0, None], [None] * 3]


def test_rows_without_weights_are_prepared_as_ever(tmp_path: Path) -> None:
    plain = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}

    made = prepare(
        spec_for(tmp_path, source(tmp_path, [plain], DataFormat.MESSAGES), form=DataFormat.MESSAGES)
    )

    assert pq.read_table(made.train_path).to_pylist() == [plain]


@pytest.mark.parametrize(("weight", "said"), [(0, "no turn to train on"), (0.5, "must be 0 or 1")])
def test_a_row_without_a_turn_to_learn_is_refused(weight: Any, said: str) -> None:
    convert = choose_conversion(DataFormat.MESSAGES, DataFormat.MESSAGES, {})

    with pytest.raises(BadRow, match=said):
        convert(talk(weight), PLACE)


def test_the_mask_of_a_turn_of_weight_0_is_empty() -> None:
    class Dataset:
        """As verl's: a mask of ones for the assistant."""

        seen: ClassVar[list[dict[str, Any]]] = []

        def _process_single_message(self, index: int, message: dict[str, Any]) -> Any:
            self.seen.append(message)
            return [1, 2], torch.ones(2), torch.ones(2), {}

    made = weigh(Dataset)()
    masks = [
        made._process_single_message(
            index=0, message={"role": "assistant", "content": "x", "weight": weight}
        )[1]
        for weight in (0, 1, None)
    ]

    assert [mask.sum().item() for mask in masks] == [0, 2, 2]
    # Templates never see it.
    assert Dataset.seen == [{"role": "assistant", "content": "x"}] * 3
