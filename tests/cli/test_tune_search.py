"""`trellis tune search`: what is wrong before its first trial is not told as trials that failed."""

import json
import subprocess
from pathlib import Path

import pytest
from trellis_cli.errors import ExitCode
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command

EXAMPLE = REPOSITORY_ROOT / "sdk" / "examples" / "react_maths"


@pytest.mark.parametrize(
    ("space", "complaint"),
    [
        (json.dumps({"algorithm.optimizer.lr": [0.0]}), "algorithm.optimizer.lr must be more than 0"),
        ("{", "invalid"),
    ],
)
def test_a_search_that_cannot_begin_says_why(tmp_path: Path, space: str, complaint: str) -> None:
    command = python_command("-m", "trellis_cli", "tune", "search", str(EXAMPLE / "tune.yaml"))
    command += [f"{EXAMPLE / 'workflow.py'}:workflow", "--space", space]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)

    assert done.returncode == ExitCode.USAGE, done.stderr
    assert complaint in done.stderr
    assert "RuntimeWarning" not in done.stderr
    assert "cannot start" in done.stderr.splitlines()[-2]
