"""Converts a GGUF file to a model folder, in a child process that holds torch and no secrets."""

import shutil
from pathlib import Path

from trellis_api.core.settings import Settings

from trellis_workers.models.child import RequireWanted
from trellis_workers.models.child_module import run_module
from trellis_workers.models.hub import FetchFailed

MODULE = "trellis_train.gguf_import"
#: Full-precision weights have up to eight times the bytes of a file of 4 bits a weight.
_GROWTH = 8


def convert(settings: Settings, file: Path, folder: Path, *, require_wanted: RequireWanted) -> None:
    """Write the model of the file to ``folder``, which does not exist yet. Raises ``FetchFailed``."""
    needed, free = _GROWTH * file.stat().st_size, shutil.disk_usage(folder.parent).free
    if free - needed < settings.min_free_disk_bytes:
        raise FetchFailed(f"The converted model may need {needed:,} bytes, but only {free:,} bytes are free.")
    run_module(
        settings,
        MODULE,
        [str(file), str(folder)],
        folder=folder,
        doing="Converting the file",
        require_wanted=require_wanted,
    )
