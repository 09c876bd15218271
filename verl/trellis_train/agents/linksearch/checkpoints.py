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

#: Where verl's PPO puts weights, under their names here.
_WEIGHTS = {
    "actor/lora_adapter/adapter_model.safetensors": "adapter_model.safetensors",
    "actor/huggingface/model.safetensors": "model.safetensors",
}
_CONFIG, _STATE = "config.json", "training_state.json"


def write_checkpoint(
    folder: Path,
    source: Path,
    *,
    step: int,
    params: dict[str, Any],
    best: dict[str, Any] | None,
    waited: int,
) -> None:
    """Write ``folder`` for verl's checkpoint ``source``; it appears whole or not at all."""
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


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, default=str) + "\n")


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """The same file under a second name; a copy of it where there are no links."""
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)
