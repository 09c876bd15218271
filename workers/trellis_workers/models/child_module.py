"""Runs a module of the engine that writes a model's files, in a child process that holds no secrets."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_contracts.dry_run import EXIT_BAD_REQUEST

from trellis_workers.core.last_lines import last_lines
from trellis_workers.models.hub import FetchFailed

#: What the child sees of this process's environment: nothing of the platform's.
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
_TIMEOUT_S = 4 * 3600


def run_module(
    settings: Settings, module: str, arguments: Sequence[str], *, folder: Path, doing: str
) -> None:
    """Run ``python -m module``, which writes ``folder``; its log lies beside it. Raises ``FetchFailed``.

    ``doing`` begins the sentence about a failure, such as "Converting the file".
    """
    log = folder.with_name("convert.log")
    with log.open("wb") as output:
        try:
            ended = subprocess.run(  # noqa: S603 - our own module, on a file below the data root
                [str(settings.job_python or sys.executable), "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder.parent,
                env=_environment(),
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise FetchFailed(f"{doing} took longer than {_TIMEOUT_S // 3600} h.") from error
    if ended.returncode == 0:
        return
    said = (last_lines(log, 1) or [""])[-1].strip()
    if ended.returncode == EXIT_BAD_REQUEST:
        raise FetchFailed(said)
    raise FetchFailed(f"{doing} failed with exit code {ended.returncode}: {said[:300]}")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
