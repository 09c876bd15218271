"""Columns described by their lengths are described as the TransferQueue does."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict
from transfer_queue import metadata
from trellis_train.compat.queue_schema import describing_by_lengths
from trellis_train.rollout.rollout_columns import to_columns

lengths = st.lists(st.integers(0, 9), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def queues() -> Any:
    """The queue's own function, whatever another test has installed."""
    return getattr(metadata.extract_field_schema, "__wrapped__", metadata.extract_field_schema)


def make_rows(lengths: list[int]) -> list[dict[str, Any]]:
    return [
        {
            "responses": torch.arange(length),
            "images": torch.rand(length, 2),
            "rm_scores": torch.rand(3),
            "score": torch.tensor(0.5),
            "uid": f"prompt-{row}",
        }
        for row, length in enumerate(lengths)
    ]


@given(lengths=lengths)
def test_the_description_is_the_queues(queues: Any, lengths: list[int]) -> None:
    columns = to_columns(make_rows(lengths))

    ours, theirs = describing_by_lengths(queues)(columns), queues(columns)

    assert ours == theirs
    assert list(ours) == list(theirs)


def test_so_is_that_of_a_tensordict(queues: Any) -> None:
    columns = {name: each for name, each in to_columns(make_rows([2, 3])).items() if name != "uid"}
    data = TensorDict(columns, batch_size=2)

    assert describing_by_lengths(queues)(data) == queues(data)


def test_a_column_of_another_length_is_the_queues_own_error(queues: Any) -> None:
    columns = to_columns(make_rows([2, 3]))
    columns["responses"] = to_columns(make_rows([1, 2, 3]))["responses"]

    with pytest.raises(ValueError, match="Inconsistent batch dimension for field 'responses'"):
        describing_by_lengths(queues)(columns)
