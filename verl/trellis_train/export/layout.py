"""What a checkpoint holds and where: trainers lay theirs out differently."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_train.export.errors import CheckpointIncomplete

CONFIG_FILE = "config.json"
ADAPTER_CONFIG_FILE = "adapter_config.json"
ADAPTER_WEIGHTS_FILE = "adapter_model.safetensors"
#: verl's, beside the shards of a LoRA run.
LORA_META_FILE = "lora_train_meta.json"
SHARDS_CONFIG_FILE = "fsdp_config.json"
#: Where trainers put weights in Hugging Face format, and adapters in PEFT's: verl's PPO, its SFT, TRL.
_MODEL_FOLDERS = ("actor/huggingface", "huggingface", "")
_ADAPTER_FOLDERS = ("lora_adapter", "actor/lora_adapter", "huggingface", "")
#: Where verl puts the shards of the policy.
_SHARD_FOLDERS = ("actor", "")


@dataclass(frozen=True)
class Layout:
    """The parts of a checkpoint; at least one of the first three is there."""

    #: Whole weights in Hugging Face format.
    model: Path | None
    #: An adapter in PEFT's format.
    adapter: Path | None
    #: Shards of verl's FSDP engine, with the adapter's weights among them where ``lora`` is set.
    shards: Path | None
    lora: dict[str, Any] | None
    #: Configuration, tokenizer and chat template, whether weights lie beside them or not.
    config: Path | None

    @property
    def has_adapter(self) -> bool:
        """Whether what was trained is an adapter on a base model."""
        return self.adapter is not None or self.lora is not None


def read_layout(checkpoint: Path) -> Layout:
    """Look into ``.../global_step_N``; ``CheckpointIncomplete`` where there is nothing to export."""
    if not checkpoint.is_dir():
        raise CheckpointIncomplete(f"Checkpoint folder not found: {checkpoint}.")
    adapter = _find(checkpoint, _ADAPTER_FOLDERS, ADAPTER_CONFIG_FILE)
    shards = _find(checkpoint, _SHARD_FOLDERS, SHARDS_CONFIG_FILE)
    config = _find(checkpoint, _MODEL_FOLDERS, CONFIG_FILE)
    meta = shards / LORA_META_FILE if shards else None
    lora = json.loads(meta.read_text()) if meta is not None and meta.is_file() else None
    is_whole = config is not None and adapter is None and lora is None and has_weights(config)
    layout = Layout(
        model=config if is_whole else None, adapter=adapter, shards=shards, lora=lora, config=config
    )
    if layout.model is None and adapter is None and shards is None:
        raise CheckpointIncomplete(f"The checkpoint {checkpoint.name} contains no weights in a known format.")
    return layout


def has_weights(folder: Path) -> bool:
    """Tell whether complete weights are in a folder, according to their index."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = set(json.loads(index.read_text())["weight_map"].values())
        return all((folder / name).is_file() for name in names)
    return (folder / "model.safetensors").is_file()


def _find(root: Path, folders: tuple[str, ...], name: str) -> Path | None:
    return next((root / below for below in folders if (root / below / name).is_file()), None)
