"""Rows of responses as the columns that the TransferQueue stores: verl's, without its wrapping."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transfer_queue.metadata import extract_field_schema
from trellis_train.rollout.rollout_columns import to_columns
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def make_rows(lengths: list[int]) -> list[dict[str, Any]]:
    """What verl's agent loop puts for responses of these lengths."""
    return [
        {
            "responses": torch.arange(length),
            "rollout_log_probs": torch.rand(length),
            "rm_scores": torch.rand(3),
            "uid": f"prompt-{row}",
            "num_turns": 2 + row,
            "reward": np.float32(0.5) * row,
            "raw_prompt": [{"role": "user", "content": "1+1="}],
            "extra_fields": {"turn_scores": [0.5] * length},
            "none": None,
        }
        for row, length in enumerate(lengths)
    ]


@given(lengths=lengths)
def test_every_column_holds_what_verls_conversion_holds(lengths: list[int]) -> None:
    rows = make_rows(lengths)

    ours, verls = to_columns(rows), list_of_dict_to_tensordict(rows)

    assert list(ours) == list(verls.keys())
    assert ours.batch_size == verls.batch_size
    for name, column in ours.items():
        if isinstance(column, torch.Tensor):
            assert [row.tolist() for row in column.unbind()] == [row.tolist() for row in verls[name].unbind()]
            assert (column.dtype, column.layout) == (verls[name].dtype, verls[name].layout)
        else:
            assert column == list(verls[name])


@given(lengths=lengths)
def test_the_queue_describes_them_as_it_does_verls(lengths: list[int]) -> None:
    rows = make_rows(lengths)

    assert extract_field_schema(to_columns(rows)) == extract_field_schema(list_of_dict_to_tensordict(rows))


def test_a_row_without_a_column_is_an_error() -> None:
    with pytest.raises(KeyError, match="score"):
        to_columns([{"score": 1.0}, {}])
