"""The event that announces a checkpoint which is complete on disk."""

import re
from pathlib import Path

from trellis_contracts.events import CheckpointEvent

from trellis_train.hooks.clock import now

#: Where trainers put the Hugging Face folder: verl's PPO, then its SFT.
HUGGING_FACE_FOLDERS = ("actor/huggingface", "huggingface")
#: verl's name for the folder of a step's checkpoint, before the number.
_STEP_PREFIX = "global_step_"


def locate_step(checkpoint_dir: str | Path, step: int) -> Path:
    """Return where verl puts the checkpoint of a step."""
    return Path(checkpoint_dir) / f"{_STEP_PREFIX}{step}"


def find_step(checkpoint_path: str | None) -> int:
    """Return the step of ``.../global_step_N``; 0 without a checkpoint."""
    match = re.search(rf"{_STEP_PREFIX}(\d+)", checkpoint_path or "")
    return int(match.group(1)) if match else 0


def describe_checkpoint(folder: str | Path, *, step: int) -> CheckpointEvent:
    """Build the event for the checkpoint in ``folder`` (``.../global_step_N``)."""
    root = Path(folder)
    return CheckpointEvent(
        time=now(),
        step=step,
        path=str(root),
        hf_path=_find_weights(root),
        size_bytes=sum(file.stat().st_size for file in root.rglob("*") if file.is_file()),
    )


def _find_weights(root: Path) -> str | None:
    """Return the Hugging Face folder if it has weights; verl always writes config and tokenizer there."""
    for name in HUGGING_FACE_FOLDERS:
        folder = root / name
        if any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin")):
            return str(folder)
    return None
