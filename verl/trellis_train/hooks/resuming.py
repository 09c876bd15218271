"""Whether a checkpoint can be resumed from, found out before anything is loaded."""

import sys
import zipfile
from pathlib import Path

from trellis_contracts.recipe import Engine

from trellis_train.hooks.checkpoints import find_step

EXIT_BAD_REQUEST = 65  # EX_DATAERR
_ADVICE = "Resume from another checkpoint, or start over in a new folder."
#: What the trainers of one process a GPU need beside weights, file by file.
_STATE = {
    Engine.TRL: ("trainer_state.json", "optimizer.pt", "scheduler.pt"),
    Engine.RETRIEVAL: ("trainer_state.pt",),
}
_WEIGHTS = ("huggingface/*.safetensors", "lora_adapter/*.safetensors")


class BrokenCheckpoint(ValueError):
    """A checkpoint is missing or incomplete; the message says what to do."""


def check_resumable(folder: Path, engine: Engine = Engine.VERL_PPO) -> None:
    """Raise ``BrokenCheckpoint`` unless ``folder`` (``.../global_step_N``) is complete for ``engine``.

    verl writes ``data.pt`` last. Files of torch are zip archives, whose directory is at their end: one that
    is cut off has none.
    """
    if not folder.is_dir() or not find_step(folder.name):
        raise BrokenCheckpoint(f"Checkpoint not found: {folder}. {_ADVICE}")
    if engine in _STATE:
        files = [folder / name for name in _STATE[engine]]
        has_weights = any(any(folder.glob(pattern)) for pattern in _WEIGHTS)
    else:
        files = [*sorted((folder / "actor").glob("*_world_size_*_rank_*.pt")), folder / "data.pt"]
        has_weights = any(file.name.startswith("model_") for file in files)
    missing = [] if has_weights else ["weights"]
    missing += [file.name for file in files if not file.is_file()]
    if missing:
        what = " and no ".join(missing)
        raise BrokenCheckpoint(f"The checkpoint {folder} is incomplete: no {what}. {_ADVICE}")
    for file in files:
        if file.suffix == ".pt" and not zipfile.is_zipfile(file):
            raise BrokenCheckpoint(
                f"The checkpoint {folder} is incomplete: {file.name} is truncated. {_ADVICE}"
            )


if (
    __name__ == "__main__"
):  # ``python -m trellis_train.hooks.resuming FOLDER ENGINE``: asked by those without our code
    try:
        check_resumable(Path(sys.argv[1]), Engine(sys.argv[2]))
    except BrokenCheckpoint as error:
        print(error, file=sys.stderr)
        sys.exit(EXIT_BAD_REQUEST)
