"""Converts a GGUF file to a model folder, in a child process that holds torch and no secrets."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_contracts.dry_run import EXIT_BAD_REQUEST

from trellis_workers.core.last_lines import last_lines
from trellis_workers.models.hub import FetchFailed

MODULE = "trellis_train.gguf_import"
#: What the child sees of this process's environment: nothing of the platform's.
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
#: Full-precision weights have up to eight times the bytes of a file of 4 bits a weight.
_GROWTH = 8
_TIMEOUT_S = 4 * 3600


def convert(settings: Settings, file: Path, folder: Path) -> None:
    """Write the model of the file to ``folder``, which does not exist yet. Raises ``FetchFailed``."""
    needed, free = _GROWTH * file.stat().st_size, shutil.disk_usage(folder.parent).free
    if free - needed < settings.min_free_disk_bytes:
        raise FetchFailed(f"The converted model may need {needed:,} bytes, but only {free:,} bytes are free.")
    log = folder.with_name("convert.log")
    with log.open("wb") as output:
        try:
            ended = subprocess.run(  # noqa: S603 - our own module, on a file below the data root
                [str(settings.job_python or sys.executable), "-m", MODULE, str(file), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder.parent,
                env=_environment(),
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise FetchFailed(f"Converting the file took longer than {_TIMEOUT_S // 3600} h.") from error
    if ended.returncode == 0:
        return
    said = (last_lines(log, 1) or [""])[-1].strip()
    if ended.returncode == EXIT_BAD_REQUEST:
        raise FetchFailed(said)
    raise FetchFailed(f"Converting the file failed with exit code {ended.returncode}: {said[:300]}")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
