"""Runs a module of the engine that writes a model's files, in a child process that holds no secrets."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_contracts.dry_run import EXIT_BAD_REQUEST

from trellis_workers.core.last_lines import last_lines
from trellis_workers.models.child import RequireWanted, run_child
from trellis_workers.models.hub import FetchFailed

#: What the child sees of this process's environment: nothing of the platform's.
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
_TIMEOUT_S = 4 * 3600


def run_module(
    settings: Settings,
    module: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    doing: str,
    require_wanted: RequireWanted,
) -> None:
    """Run ``python -m module``, which writes ``folder``; its log lies beside it.

    ``doing`` begins the sentence about a failure, such as "Converting the file". Raises ``FetchFailed`` and
    ``FetchCancelled``.
    """
    log = folder.with_name("convert.log")
    with log.open("wb") as output:
        status = run_child(
            [str(settings.job_python or sys.executable), "-m", module, *arguments],
            doing=doing,
            require_wanted=require_wanted,
            timeout_s=_TIMEOUT_S,
            stdout=output,
            stderr=output,
            cwd=folder.parent,
            env=_environment(),
        )
    if status == 0:
        return
    said = (last_lines(log, 1) or [""])[-1].strip()
    if status == EXIT_BAD_REQUEST:
        raise FetchFailed(said)
    raise FetchFailed(f"{doing} failed with exit code {status}: {said[:300]}")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
