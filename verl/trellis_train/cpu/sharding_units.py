"""Layers are sharded together where each alone is too small for messages of its own.

FSDP2 gathers the parameters of every layer before the layer's pass and scatters its gradients after it, and
each time the trainers wait for each other. A layer of some hundred thousand parameters computes about as
long as that takes.
"""

from collections.abc import Callable
from typing import Any

#: Of a layer, below which it has no messages of its own.
FEWEST_PARAMETERS = 1_000_000


def selecting_large(select: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Wrap verl's choice of layers to leave out small ones."""

    def select_large(model: Any, class_names: Any) -> list[Any]:
        return [layer for layer in select(model, class_names) if _count(layer) >= FEWEST_PARAMETERS]

    return select_large


def _count(layer: Any) -> int:
    return sum(parameter.numel() for parameter in layer.parameters())
