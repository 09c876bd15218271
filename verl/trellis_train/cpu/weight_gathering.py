"""Weights of several trainers are gathered together before they travel to the rollout engines.

verl gathers every parameter by itself. Where trainers share the cores of a CPU each of these messages waits
for both of them, about a millisecond for a parameter of any size: two trainers of a model with fifty
parameters spend most of a weight sync on that.

Adapters that travel as part of the weights (``model.lora.merge``) are added in the weights' own precision:
verl rounds to bfloat16 what a rollout engine on a CPU computes in single precision.
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
#: PEFT's name of the only adapter of a model that verl trains.
ADAPTER = "default"


def handing_out_whole(hand_out: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the engine's ``get_per_tensor_param`` to return whole weights; verl gathers separate adapters."""

    @wraps(hand_out)
    def hand_out_whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(self.module, "peft_config"):
            if self.model_config.lora.get("merge", False):
                return merged_weights(self.module), None
            return hand_out(self, *args, **kwargs)
        state = self.module.state_dict
        self.module.state_dict = lambda: gather_together(state())
        try:
            return hand_out(self, *args, **kwargs)
        finally:
            del self.module.state_dict  # the class has its own

    return hand_out_whole


def merged_weights(module: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield a PEFT model's weights by base names, with the adapter added; the model stays unchanged.

    Raises ValueError where the adapter is on anything but linear layers.
    """
    from peft.tuners.lora import LoraLayer
    from verl.utils.fsdp_utils import normalize_peft_param_name
    from verl.utils.model import convert_weight_keys

    state = gather_together(module.state_dict())
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, LoraLayer)}
    for name, layer in layers.items():
        if layer.use_dora.get(ADAPTER) or getattr(layer, "fan_in_fan_out", False):
            raise ValueError(f"this kind of adapter cannot be applied to {name}")
    added = {
        f"{name}.base_layer.weight": (
            layer.scaling[ADAPTER],
            f"{name}.lora_B.{ADAPTER}.weight",
            f"{name}.lora_A.{ADAPTER}.weight",
        )
        for name, layer in layers.items()
    }
    for base, (_, *parts) in added.items():
        if not state.keys() >= {base, *parts}:
            raise ValueError(f"the adapter targets a module that is not a linear layer: {base}")
    names = normalize_peft_param_name({name: name for name in state})
    for name, source in convert_weight_keys(names, module).items():
        weight = _whole(state[source])
        if source in added:
            scaling, *parts = added[source]
            weight = torch.addmm(weight, *(_whole(state[part]) for part in parts), alpha=scaling)
        yield name, weight


def _whole(weight: Tensor) -> Tensor:
    return weight.full_tensor() if isinstance(weight, DTensor) else weight


def gather_together(state: Mapping[str, Any]) -> dict[str, Any]:
    """Gather all weights that are sharded by rows over one group; the others stay as they are.

    Every rank of the group calls it with the same names.
    """
    whole: dict[str, Any] = dict(state)
    for batch in _batches(state):
        whole.update(_gather(batch))
    return whole


def _batches(state: Mapping[str, Any]) -> Iterator[dict[str, DTensor]]:
    """Yield weights that are sent together: of one group and type, up to ``MOST_ELEMENTS``."""
    groups: dict[Any, dict[str, DTensor]] = {}
    for name, weight in state.items():
        if isinstance(weight, DTensor) and weight.placements == (Shard(0),) and weight.device_mesh.size() > 1:
            groups.setdefault((weight.device_mesh, weight.dtype), {})[name] = weight
    for weights in groups.values():
        batch: dict[str, DTensor] = {}
        size = 0
        for name, weight in weights.items():
            part = _part(weight)
            if batch and size + part > MOST_ELEMENTS:
                yield batch
                batch, size = {}, 0
            batch[name] = weight
            size += part
        yield batch


def _rows(weight: DTensor) -> int:
    """Return the largest number of rows on a rank: ``ceil(rows / ranks)``."""
    return -(-weight.shape[0] // weight.device_mesh.size())


def _part(weight: DTensor) -> int:
    """Count the elements in the largest part of a rank."""
    return _rows(weight) * math.prod(weight.shape[1:])


def _gather(weights: Mapping[str, DTensor]) -> dict[str, Tensor]:
    """Gather whole weights in one message per rank, in which its shards are padded to equal size."""
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
