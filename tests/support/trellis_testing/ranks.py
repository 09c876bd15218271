"""Scripts that run on two ranks of a process group, as trainers of two slots do."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def run_on_two_ranks(
    script: str, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> str:
    """Run ``script``, which is saved in ``folder``, on two ranks with ``arguments``; return its output."""
    file = folder / "on_two_ranks.py"
    file.write_text(script)
    done = subprocess.run(
        [*TORCHRUN, str(file), str(folder), *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
