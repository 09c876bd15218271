"""Checkpoints in the form that other programs look for, beside verl's own.

``checkpoint-N/{adapter_model.safetensors, config.json, training_state.json}`` holds the weights (of a run
without an adapter all of them, as ``model.safetensors``); what training goes on from stays in verl's
``global_step_N``, which ``training_state.json`` names.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

#: Where the weights lie in a checkpoint of verl's, under their names here.
_WEIGHTS = {
    "actor/lora_adapter/adapter_model.safetensors": "adapter_model.safetensors",
    "actor/huggingface/model.safetensors": "model.safetensors",
}
_CONFIG, _STATE = "config.json", "training_state.json"
#: verl's note of a run with an adapter, whose weights it keeps among the shards.
_ADAPTER_NOTE, _ADAPTER_FOLDER = "actor/lora_train_meta.json", "actor/lora_adapter"


def write_checkpoint(
    folder: Path,
    source: Path,
    *,
    base: Path,
    step: int,
    params: dict[str, Any],
    best: dict[str, Any] | None,
    waited: int,
) -> None:
    """Write ``folder`` for verl's checkpoint ``source``; it appears whole or not at all.

    ``base`` is the model that an adapter is of.
    """
    _write_adapter(source, base)
    staging = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    for place, name in _WEIGHTS.items():
        if (source / place).is_file():
            link_or_copy(source / place, staging / name)
            break
    adapter = source / "actor/lora_adapter/adapter_config.json"
    if adapter.is_file():
        link_or_copy(adapter, staging / adapter.name)
    model = source / "actor/huggingface/config.json"
    config = json.loads(model.read_text()) if model.is_file() else {}
    _write(staging / _CONFIG, {"model": config, "params": params})
    state = {"step": step, "checkpoint": str(source), "best": best, "evaluations_without_improvement": waited}
    _write(staging / _STATE, state)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(staging, folder)


def _write_adapter(source: Path, base: Path) -> None:
    """Put an adapter that lies among the shards of ``source`` beside them, in PEFT's format; once."""
    target = source / _ADAPTER_FOLDER
    if target.exists() or not (source / _ADAPTER_NOTE).is_file():
        return
    # Imported here: only runs with an adapter need what it brings.
    from trellis_train.export.adapters import write_adapter
    from trellis_train.export.layout import read_layout

    staging = target.with_name(f".{target.name}.writing")
    shutil.rmtree(staging, ignore_errors=True)
    write_adapter(read_layout(source), base=base, output=staging)
    os.replace(staging, target)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, default=str) + "\n")


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """The same file under a second name; a copy of it where there are no links."""
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)
