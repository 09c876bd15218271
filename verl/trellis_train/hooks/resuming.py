"""Whether a checkpoint can be resumed from, found out before anything is loaded."""

import sys
import zipfile
from pathlib import Path

from trellis_train.hooks.checkpoints import find_step

EXIT_BAD_REQUEST = 65  # EX_DATAERR
_ADVICE = "Resume from another checkpoint, or start over in a new folder."


class BrokenCheckpoint(ValueError):
    """A checkpoint is missing or incomplete; the message says what to do."""


def check_resumable(folder: Path) -> None:
    """Raises ``BrokenCheckpoint`` unless ``folder`` (``.../global_step_N``) is a whole checkpoint of PPO.

    verl writes ``data.pt`` last. Files of torch are zip archives, whose directory is at their end: one that
    is cut off has none.
    """
    if not folder.is_dir() or not find_step(folder.name):
        raise BrokenCheckpoint(f"Checkpoint not found: {folder}. {_ADVICE}")
    files = sorted((folder / "actor").glob("*_world_size_*_rank_*.pt"))
    missing = [] if any(file.name.startswith("model_") for file in files) else ["weights"]
    if not (folder / "data.pt").is_file():
        missing.append("data.pt")
    if missing:
        what = " and no ".join(missing)
        raise BrokenCheckpoint(f"The checkpoint {folder} is incomplete: no {what}. {_ADVICE}")
    for file in (*files, folder / "data.pt"):
        if not zipfile.is_zipfile(file):
            raise BrokenCheckpoint(
                f"The checkpoint {folder} is incomplete: {file.name} is truncated. {_ADVICE}"
            )


if (
    __name__ == "__main__"
):  # ``python -m trellis_train.hooks.resuming FOLDER``: asked by those without our code
    try:
        check_resumable(Path(sys.argv[1]))
    except BrokenCheckpoint as error:
        print(error, file=sys.stderr)
        sys.exit(EXIT_BAD_REQUEST)
