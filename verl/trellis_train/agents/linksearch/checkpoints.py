"""Checkpoints in the form that other programs look for, beside verl's own.

``checkpoint-N/`` is a folder that ``from_pretrained`` of transformers loads: the weights, in as many files as
verl wrote, the model's ``config.json`` and the tokenizer. An adapter lies there in PEFT's format beside links
to the weights of its base: transformers takes a folder with ``config.json`` for that of the base.
``training_state.json`` says how far the run was; what training goes on from stays in verl's
``global_step_N``, which that file names.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from trellis_train.export.layout import CONFIG_FILE, has_weights

_STATE = "training_state.json"
#: Where verl puts a model's folder: configuration and tokenizer in any case, whole weights if it writes them.
_HUGGING_FACE = "actor/huggingface"
#: What a model's weights may be called.
_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json", "pytorch_model*")
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

    ``base`` is the model that training began with. Raises ``CheckpointIncomplete`` where ``source`` holds no
    weights.
    """
    _write_adapter(source, base)
    staging = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    _lay_model(staging, source, base)
    state = {
        "step": step,
        "checkpoint": str(source),
        "best": best,
        "evaluations_without_improvement": waited,
        "params": params,
    }
    (staging / _STATE).write_text(json.dumps(state, indent=2, default=str) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(staging, folder)


def _lay_model(staging: Path, source: Path, base: Path) -> None:
    """Put weights, configuration and tokenizer of ``source`` into ``staging``."""
    model, adapter = source / _HUGGING_FACE, source / _ADAPTER_FOLDER
    if adapter.is_dir():
        _link_all(adapter, staging)
        _add_base(staging, base)
        _add_companions(staging, model)
    elif has_weights(model):
        _link_all(model, staging)
        _add_companions(staging, base)
    else:  # of a run that was told to save shards alone
        # Imported here: only such runs need what it brings.
        from trellis_train.export.gathering import gather_model

        with tempfile.TemporaryDirectory(dir=staging.parent) as scratch:
            gather_model(
                source, base=base, output=staging, scratch=Path(scratch), leave_if_asked=lambda: None
            )


def _add_base(staging: Path, base: Path) -> None:
    """Lay the base model beside its adapter. One that is not on this machine is left to its name."""
    folder = base if base.is_dir() else _find_snapshot(str(base))
    if folder is None:
        return
    for pattern in _WEIGHTS:
        for path in folder.glob(pattern):
            _link(path.resolve(), staging / path.name)
    shutil.copyfile(folder / CONFIG_FILE, staging / CONFIG_FILE)
    _add_companions(staging, folder)


def _find_snapshot(name: str) -> Path | None:
    """Find where the hub's model of that name was downloaded to, if it was."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        return None


def _add_companions(staging: Path, folder: Path) -> None:
    """Add what is not there yet of the tokenizer and the settings of generation."""
    if folder.is_dir():
        # Imported here: it brings torch.
        from trellis_train.export.writing import copy_companions

        copy_companions(folder, staging, replaces=False)


def _link(source: Path, target: Path) -> None:
    """Hard-link the file, or symlink it on another file system: base models are too large to copy."""
    try:
        os.link(source, target)
    except OSError:
        target.symlink_to(source)


def _link_all(source: Path, target: Path) -> None:
    for path in source.iterdir():
        if path.is_file():
            link_or_copy(path, target / path.name)


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


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Hard-link the file, or copy it on a file system without links."""
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)
