"""Scoring the answers to all of MATH, on two processors."""

import json
import os
import subprocess
from pathlib import Path

from trellis_cli.errors import Problem
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command

from trellis_tools.bench.result import Result

SCORING_LIMIT_S = 60.0
#: Part of the folder of published test sets, which ``TRELLIS_BENCHMARK_DIR`` names.
_FILE = Path("math") / "test.jsonl"
_PATIENCE_S = 900.0


def measure_eval_scoring() -> Result:
    """Measure the seconds for the 5,000 answers; nothing of the engine is imported here."""
    folder = Path(os.environ.get("TRELLIS_BENCHMARK_DIR", REPOSITORY_ROOT.parent / "shared" / "data"))
    if not (folder / _FILE).exists():
        raise Problem(
            f"{folder / _FILE} is not there", hint="TRELLIS_BENCHMARK_DIR names the folder of test sets"
        )
    command = python_command("-m", "trellis_train.evaluate.scoring_speed", str(folder / _FILE))
    done = subprocess.run(  # noqa: S603
        command, cwd=REPOSITORY_ROOT, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    if done.returncode:
        raise Problem(f"the scoring ended with {done.returncode}:\n{done.stderr[-3000:]}")
    measured = json.loads(done.stdout.splitlines()[-1])
    seconds = measured.pop("seconds")
    return Result("eval_scoring", seconds, SCORING_LIMIT_S, "s", details=measured)
