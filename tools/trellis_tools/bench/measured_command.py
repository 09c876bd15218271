"""Runs a command of a benchmark apart from the caller's settings, and tells how it failed."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from trellis_cli.errors import Problem
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command

PATIENCE_S = 900.0
#: Settings of the platform, of a cluster and of threads, each of which a measurement makes itself.
NOT_INHERITED = ("TRELLIS_", "RAY_", "OMP_", "GOMP_")


def run_measured(
    *arguments: str, log: Path, env: Mapping[str, str] | None = None, timeout_s: float = PATIENCE_S
) -> str:
    """Run a command and return its output; a failure shows the end of its log."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    with log.open("w") as errors:
        done = subprocess.run(  # noqa: S603
            python_command(*arguments),
            cwd=REPOSITORY_ROOT,
            env={**inherited, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    if done.returncode:
        tail = (done.stdout + log.read_text(errors="replace"))[-3000:]
        raise Problem(f"`{' '.join(arguments[:2])}` failed ({done.returncode}):\n{tail}")
    return done.stdout
