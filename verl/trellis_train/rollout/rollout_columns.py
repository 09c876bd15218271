"""Convert rows of responses to the columns that the TransferQueue stores.

verl makes a TensorDict of them, which wraps each value that is no tensor in an object; the queue unwraps
them, once for each column, before they travel. For 256 responses that was most of what came after their last
token.
The queue reads a batch's names, values and size, and lists of values as they are.
"""

from collections.abc import Sequence
from typing import Any

import torch


class Columns(dict[str, Any]):
    """Values of a batch by column: tensors whose first dimension is the batch, jagged tensors, or lists."""

    def __init__(self, values: dict[str, Any], batch_size: int) -> None:
        super().__init__(values)
        self.batch_size = torch.Size([batch_size])


def to_columns(rows: Sequence[dict[str, Any]]) -> Columns:
    """Convert rows like verl's ``list_of_dict_to_tensordict``, with the columns of the first row."""
    return Columns({name: _pack([row[name] for row in rows]) for name in rows[0]}, len(rows))


def _pack(values: list[Any]) -> Any:
    """Stack tensors of one shape, make a jagged tensor of others, and return other values unchanged."""
    if not all(isinstance(value, torch.Tensor) for value in values):
        return values
    if all(value.shape == values[0].shape for value in values):
        return torch.stack(values)
    return torch.nested.as_nested_tensor(values, layout=torch.jagged)
