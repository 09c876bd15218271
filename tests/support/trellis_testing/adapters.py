"""What a training with LoRA has changed: the adapter, and nothing else."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from trellis_train.export.layout import read_layout
from trellis_train.export.shards import gather, is_adapter_key


def base_name(name: str) -> str:
    """Return the name of a weight in the base model of the adapter."""
    return name.removeprefix("base_model.model.").replace(".base_layer.", ".")


def expect_only_the_adapter_learned(checkpoint: Path, base: Path) -> None:
    """Check that only the adapter was trained: its B matrices are not 0, and all else equals the base."""
    state = gather(read_layout(checkpoint).shards)
    adapter = [name for name in state if is_adapter_key(name)]
    assert adapter
    assert all(torch.any(state[name] != 0) for name in adapter)
    before = load_file(base / "model.safetensors")
    kept = {base_name(name): tensor for name, tensor in state.items() if name not in adapter}
    assert kept.keys() & before.keys() == before.keys()
    assert all(torch.equal(kept[name], before[name].float()) for name in before)
