"""Weights of several trainers are gathered together before they travel to the samplers.

verl gathers every parameter by itself. Where trainers share the cores of a CPU each of these messages waits
for both of them, about a millisecond for a parameter of any size: two trainers of a model with fifty
parameters spend most of a weight sync on that.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard

#: Elements of a rank that travel in one message (16 MiB in single precision).
MOST_ELEMENTS = 4 * 1024 * 1024


def handing_out_whole(hand_out: Callable[..., Any]) -> Callable[..., Any]:
    """The engine's ``get_per_tensor_param`` with whole weights; an adapter's stay as verl gathers them."""

    @wraps(hand_out)
    def hand_out_whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(self.module, "peft_config"):
            return hand_out(self, *args, **kwargs)
        state = self.module.state_dict
        self.module.state_dict = lambda: gather_together(state())
        try:
            return hand_out(self, *args, **kwargs)
        finally:
            del self.module.state_dict  # the class has its own

    return hand_out_whole


def gather_together(state: Mapping[str, Any]) -> dict[str, Any]:
    """``state`` with all weights whole that are sharded by rows over one group; the others are as they were.

    Every rank of the group calls it with the same names.
    """
    whole: dict[str, Any] = dict(state)
    for bunch in _bunches(state):
        whole.update(_gather(bunch))
    return whole


def _bunches(state: Mapping[str, Any]) -> Iterator[dict[str, DTensor]]:
    """Weights that travel together: of one group and type, up to ``MOST_ELEMENTS``."""
    groups: dict[Any, dict[str, DTensor]] = {}
    for name, weight in state.items():
        if isinstance(weight, DTensor) and weight.placements == (Shard(0),) and weight.device_mesh.size() > 1:
            groups.setdefault((weight.device_mesh, weight.dtype), {})[name] = weight
    for weights in groups.values():
        bunch: dict[str, DTensor] = {}
        size = 0
        for name, weight in weights.items():
            part = _part(weight)
            if bunch and size + part > MOST_ELEMENTS:
                yield bunch
                bunch, size = {}, 0
            bunch[name] = weight
            size += part
        yield bunch


def _rows(weight: DTensor) -> int:
    """The most rows that a rank has: all have as many but for the last ones with any."""
    return -(-weight.shape[0] // weight.device_mesh.size())


def _part(weight: DTensor) -> int:
    """Elements of the largest part of a rank."""
    return _rows(weight) * math.prod(weight.shape[1:])


def _gather(weights: Mapping[str, DTensor]) -> dict[str, Tensor]:
    """The whole weights, from one message of each rank: its parts, all filled up to the same size."""
    first = next(iter(weights.values()))
    group, ranks = first.device_mesh.get_group(), first.device_mesh.size()
    sizes = [_part(weight) for weight in weights.values()]
    mine = torch.zeros(sum(sizes), dtype=first.dtype)
    for part, weight in zip(mine.split(sizes), weights.values(), strict=True):
        local = weight.to_local().detach().reshape(-1)
        part[: local.numel()] = local
    parts = mine.new_empty(ranks * mine.numel())
    dist.all_gather_into_tensor(parts, mine, group=group)
    columns = zip(parts.view(ranks, -1).split(sizes, dim=1), weights.items(), strict=True)
    return {
        name: column.reshape(ranks * _rows(weight), *weight.shape[1:])[: weight.shape[0]]
        for column, (name, weight) in columns
    }
