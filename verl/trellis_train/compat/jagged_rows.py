"""Taking rows out of a batch of jagged tensors without taking all of it apart.

verl cuts a batch into its mini- and micro-batches by making a tensor of every sample and joining
them again: a tenth of a second for some hundred samples, several times a step, in the process that
every other one waits for. Rows that lie side by side are slices of the same values.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from trellis_train.compat.change import change
from trellis_train.compat.isolation import GROUP

_TENSORDICTS = "verl.utils.tensordict_utils"
_TESTS = "tests/train/compat/test_jagged_rows.py"
_SLICED: dict[str, Any] = {
    "group": GROUP,
    "kind": "speed",
    "without": "A tensor is made of every sample and joined again: a tenth of a second, often in a step.",
}


def is_plain_jagged(column: Any) -> bool:
    """Whether ``column`` is a jagged tensor of one row of numbers a sample, without gaps between them."""
    import torch

    if not isinstance(column, torch.Tensor) or column.layout != torch.jagged:
        return False
    nested: Any = column  # of a class that torch keeps to itself
    return nested.dim() == 2 and nested.lengths() is None and not nested.requires_grad


def slice_rows(column: Any, start: int, end: int) -> Any:
    """Rows ``start`` to ``end`` of a plain jagged tensor; they share its memory."""
    import torch

    offsets = column.offsets()[start : end + 1]
    lengths = offsets.diff()
    return torch.nested.nested_tensor_from_jagged(
        column.values()[int(offsets[0]) : int(offsets[-1])],
        offsets - offsets[0],
        min_seqlen=int(lengths.min()),
        max_seqlen=int(lengths.max()),
    )


@change(
    target=f"{_TENSORDICTS}.chunk_tensordict",
    does="Slices plain jagged columns where a batch is cut into parts.",
    tests=(f"{_TESTS}::test_chunks_are_those_of_verl",),
    **_SLICED,
)
def chunking_by_slices(chunk: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """verl's ``chunk_tensordict``, with plain jagged columns sliced."""

    @wraps(chunk)
    def chunk_rows(td: Any, chunks: int) -> list[Any]:
        plain = {name: column for name, column in td.items() if is_plain_jagged(column)}
        if not plain or len(td) % chunks:
            return chunk(td, chunks)
        parts = chunk(td.exclude(*plain), chunks)
        size = len(td) // chunks
        for place, part in enumerate(parts):
            for name, column in plain.items():
                part[name] = slice_rows(column, place * size, (place + 1) * size)
        return parts

    return chunk_rows


@change(
    target=f"{_TENSORDICTS}.index_select_tensor_dict",
    does="Slices plain jagged columns where rows are chosen that lie side by side.",
    tests=(f"{_TESTS}::test_rows_that_are_chosen_are_those_of_verl",),
    **_SLICED,
)
def selecting_by_slices(select: Callable[..., Any]) -> Callable[..., Any]:
    """verl's ``index_select_tensor_dict``, with plain jagged columns sliced where rows lie side by side."""

    @wraps(select)
    def select_rows(batch: Any, indices: Any) -> Any:
        places = indices.tolist() if hasattr(indices, "tolist") else list(indices)
        if batch is None or not places or places != list(range(places[0], places[-1] + 1)):
            return select(batch, indices)
        plain = {name: column for name, column in batch.items() if is_plain_jagged(column)}
        chosen = select(batch.exclude(*plain), indices)
        for name, column in plain.items():
            chosen[name] = slice_rows(column, places[0], places[-1] + 1)
        return chosen

    return select_rows
