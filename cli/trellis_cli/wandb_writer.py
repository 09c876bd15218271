"""Metrics of a local run for Weights & Biases, by the package wandb and its own variables.

Without WANDB_API_KEY the run is kept in the output folder, as with WANDB_MODE=offline, and ``wandb sync``
sends it.
"""

import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err

#: In the output folder: a resumed run goes on with its W&B run.
_ID_FILE = "wandb-run"
_PROJECT, _OFFLINE = "trellis", "offline"
#: Of the machine nothing is sent: neither its name, code, console nor packages.
_PRIVATE: dict[str, Any] = {
    "silent": True,
    "host": _PROJECT,
    "program": _PROJECT,
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_save_requirements": False,
}


class WandbRun:
    """Logs each step; ``Problem`` where the package wandb is not installed or W&B refuses the run."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, is_resumed: bool) -> None:
        try:
            import wandb
        except ImportError:
            raise Problem(
                "monitor_type: wandb needs the package wandb",
                hint="pip install wandb, or remove monitor_type",
                exit_code=ExitCode.USAGE,
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._run: Any = wandb.init(
                project=os.environ.get("WANDB_PROJECT") or _PROJECT,
                id=_choose_id(folder / _ID_FILE, is_resumed=is_resumed),
                name=os.environ.get("WANDB_NAME") or folder.resolve().name,
                resume="allow",
                config=dict(config),
                dir=str(folder),
                mode=cast(Any, _choose_mode()),
                settings=wandb.Settings(**_PRIVATE),
            )
        except wandb.errors.Error as error:
            raise Problem(
                f"Weights & Biases does not take the run: {error}",
                hint="check WANDB_API_KEY, or set WANDB_MODE=offline and run wandb sync later",
            ) from error
        if self._run.settings.mode == _OFFLINE:
            err.print(
                f"W&B run offline; to send it: wandb sync {folder}/wandb/offline-run-*",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Log all finite numbers of a step."""
        self._run.log({name: value for name, value in values.items() if math.isfinite(value)}, step=step)

    def close(self) -> None:
        """Send or write what is left."""
        self._run.finish()


def _choose_mode() -> str:
    """Return the mode: what WANDB_MODE says, else offline without a key.

    The package reads its variables once for a process, so the mode is given to each run.
    """
    return os.environ.get("WANDB_MODE") or ("online" if os.environ.get("WANDB_API_KEY") else _OFFLINE)


def _choose_id(file: Path, *, is_resumed: bool) -> str:
    """Return the ID of the run that is resumed in the folder, else a new one."""
    if not (is_resumed and file.exists()):
        file.write_text(secrets.token_hex(6), encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()
