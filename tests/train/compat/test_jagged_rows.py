"""Rows that are sliced out of a batch are those that verl would have joined from single samples."""

from typing import Any

import pytest
import torch
from tensordict import TensorDict
from trellis_train.compat.jagged_rows import chunking_by_slices, is_plain_jagged, selecting_by_slices
from verl.utils import tensordict_utils
from verl.utils.tensordict_utils import assign_non_tensor

LENGTHS = [3, 5, 1, 5, 2, 4, 4, 6]
EVEN_LENGTHS = [4] * 8


@pytest.fixture(scope="module")
def verls() -> Any:
    """verl's own functions, whatever another test has installed."""
    functions = (tensordict_utils.chunk_tensordict, tensordict_utils.index_select_tensor_dict)
    return [getattr(function, "__wrapped__", function) for function in functions]


def jagged(lengths: list[int], *, like: torch.Tensor) -> torch.Tensor:
    rows = [torch.arange(length).to(like) + place for place, length in enumerate(lengths)]
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def make_batch(lengths: list[int]) -> TensorDict:
    batch = TensorDict(
        {
            "input_ids": jagged(lengths, like=torch.tensor(0)),
            "advantages": jagged(lengths, like=torch.tensor(0.5)),
            "score": torch.arange(len(lengths)).float(),
        },
        batch_size=len(lengths),
    )
    assign_non_tensor(batch, temperature=0.7)
    return batch


def assert_same(found: TensorDict, expected: TensorDict) -> None:
    assert set(found.keys()) == set(expected.keys())
    assert found.batch_size == expected.batch_size
    assert found["temperature"] == expected["temperature"]
    assert torch.equal(found["score"], expected["score"])
    for name in ("input_ids", "advantages"):
        column, other = found[name], expected[name]
        assert torch.equal(column.values(), other.values())
        assert torch.equal(column.offsets(), other.offsets())
        assert column.dtype == other.dtype
        assert torch.equal(column.to_padded_tensor(0), other.to_padded_tensor(0))


@pytest.mark.parametrize("lengths", [LENGTHS, EVEN_LENGTHS])
@pytest.mark.parametrize("chunks", [1, 2, 4, 8])
def test_chunks_are_those_of_verl(verls: Any, lengths: list[int], chunks: int) -> None:
    batch = make_batch(lengths)
    pairs = zip(chunking_by_slices(verls[0])(batch, chunks), verls[0](batch, chunks), strict=True)
    for found, expected in pairs:
        assert_same(found, expected)


@pytest.mark.parametrize("places", [[2, 3, 4, 5], [0], list(range(8)), [5, 1, 1, 0], [3, 2]])
def test_rows_that_are_chosen_are_those_of_verl(verls: Any, places: list[int]) -> None:
    batch = make_batch(LENGTHS)
    select = selecting_by_slices(verls[1])
    assert_same(select(batch, torch.tensor(places)), verls[1](batch, torch.tensor(places)))
    assert_same(select(batch, places), verls[1](batch, places))


def test_a_part_can_be_cut_again(verls: Any) -> None:
    """As a mini-batch is cut into micro-batches."""
    batch = make_batch(LENGTHS)
    found = chunking_by_slices(verls[0])(selecting_by_slices(verls[1])(batch, torch.arange(4, 8)), 2)
    expected = verls[0](verls[1](batch, torch.arange(4, 8)), 2)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


def test_a_batch_that_cannot_be_cut_evenly_is_refused_as_verl_refuses_it(verls: Any) -> None:
    with pytest.raises(AssertionError, match="divisible"):
        chunking_by_slices(verls[0])(make_batch(LENGTHS), 3)


def test_only_rows_of_plain_numbers_are_sliced() -> None:
    positions = [torch.zeros(4, length) for length in LENGTHS]  # as of models with images: (4, tokens)
    offsets = torch.tensor([0, 3, 8])
    with_gaps = torch.nested.nested_tensor_from_jagged(torch.zeros(8), offsets, lengths=torch.tensor([2, 4]))

    assert is_plain_jagged(jagged(LENGTHS, like=torch.tensor(0)))
    assert not is_plain_jagged(torch.zeros(8, 4))
    assert not is_plain_jagged(with_gaps)
    assert not is_plain_jagged(torch.nested.as_nested_tensor(positions, layout=torch.jagged))
    assert not is_plain_jagged("a temperature")
