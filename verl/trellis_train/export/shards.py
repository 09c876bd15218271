"""Puts verl's FSDP shards together, of any number of ranks, in the precision in which they were saved.

verl's own merger does the work; only its cast of everything to bfloat16 is left out.
"""

import pickle
import re
from pathlib import Path
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from verl.model_merger.base_model_merger import ModelMergerConfig
from verl.model_merger.fsdp_model_merger import FSDPModelMerger, merge_non_dtensor_shards

from trellis_train.compat import other_methods
from trellis_train.compat.applying import require_group
from trellis_train.export.errors import CheckpointIncomplete, CheckpointMismatch

State = dict[str, torch.Tensor]
_LORA_KEY = re.compile(r"\.lora_(?:A|B|embedding_A|embedding_B)\.")
_WRAPPER = "base_model.model."


def gather(folder: Path) -> State:
    """Gather the whole state of the shards in ``folder`` on the CPU."""
    require_group(other_methods.EXPORT)
    config = ModelMergerConfig(
        operation="merge",
        backend="fsdp",
        local_dir=str(folder),
        hf_model_config_path=str(folder / "huggingface"),
    )
    return _Gatherer(config).gather()


def is_adapter_key(key: str) -> bool:
    """Tell whether a weight belongs to a LoRA adapter."""
    return _LORA_KEY.search(key) is not None


def take_adapter(state: State) -> State:
    """Return the adapter's weights under the names with which PEFT saves them."""
    found = {
        key.replace(".default.weight", ".weight"): tensor
        for key, tensor in state.items()
        if is_adapter_key(key)
    }
    if not found:
        raise CheckpointMismatch("The checkpoint is from a LoRA run but contains no adapter weights.")
    wrapper = "" if all(key.startswith(_WRAPPER) for key in found) else _WRAPPER
    return {f"{wrapper}{key}": tensor for key, tensor in found.items()}


class _Gatherer(FSDPModelMerger):
    """verl's merger up to the point where it would write."""

    def gather(self) -> State:
        world_size = self._get_world_size()
        self._require_files(world_size)
        first = self._load(world_size, 0)
        mesh, names = self._extract_device_mesh_info(_sharded_first(first), world_size)
        if not any(isinstance(tensor, DTensor) for tensor in first.values()) and world_size > 1:
            raise CheckpointMismatch(
                "The shards have no sharding metadata (FSDP 1), so they cannot be merged."
            )
        count, shape = self._calculate_shard_configuration(mesh, names)
        if len(shape) != 1:
            raise CheckpointMismatch(f"Shards of a {len(shape)}-dimensional device mesh cannot be merged.")
        shards = [first, *(self._load(world_size, rank) for rank in range(1, count))]
        return {key: self._merge_key(key, shards, names[0]) for key in list(first)}

    def _require_files(self, world_size: int) -> None:
        folder = Path(str(self.config.local_dir))
        names = [f"model_world_size_{world_size}_rank_{rank}.pt" for rank in range(world_size)]
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise CheckpointIncomplete(f"The checkpoint is missing {missing[0]}.")

    def _load(self, world_size: int, rank: int) -> dict[str, Any]:
        path = Path(str(self.config.local_dir)) / f"model_world_size_{world_size}_rank_{rank}.pt"
        # Mapped, not read: each weight comes into memory when it is merged. The pickles are our own runs'.
        try:
            return dict(torch.load(path, map_location="cpu", weights_only=False, mmap=True))
        except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
            raise CheckpointIncomplete(f"{path.name} is corrupted or truncated: {error}") from error

    def _merge_key(self, key: str, shards: list[dict[str, Any]], first_dimension: str) -> torch.Tensor:
        parts = [shard.pop(key) for shard in shards]
        if not isinstance(parts[0], DTensor):
            return merge_non_dtensor_shards(key, parts)
        placements = tuple(parts[0].placements)
        if first_dimension in ("dp", "ddp"):  # copies, of which one is enough
            placements = placements[1:]
        merged: torch.Tensor = self._merge_by_placement([part._local_tensor for part in parts], placements[0])
        return merged


def _sharded_first(state: dict[str, Any]) -> dict[str, Any]:
    """Keep sharded tensors if there are any: verl checks the first key only, maybe an unsharded buffer."""
    sharded = {key: tensor for key, tensor in state.items() if isinstance(tensor, DTensor)}
    return sharded or state
