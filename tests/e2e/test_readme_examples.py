"""The curl examples of the README run as they stand there, one after the other, against a real platform."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.services.platform import REPOSITORY_ROOT

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]

ADDRESS = "http://localhost:8001"


def read_examples() -> str:
    """The shell blocks under "Using curl", joined: each builds on the variables of those before it."""
    text = (REPOSITORY_ROOT / "README.md").read_text()
    section = re.search(r"^## Using curl$(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    blocks = re.findall(r"^```bash\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)
    assert ADDRESS in blocks[0]
    return "\n".join(blocks)


def test_the_curl_examples_run_as_they_stand(rig: Any, tmp_path: Path) -> None:
    assert shutil.which("curl")
    # A checkout as the README's reader has it: its data root is the platform's, the port is another.
    (tmp_path / "data").symlink_to(rig.platform.settings.data_root)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    script = read_examples().replace(ADDRESS, rig.platform.url)

    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (job,) = rig.client.get("/jobs", text="first run")["items"]
    assert job["recipe"] == "sft"
    # It was stopped by the examples, if it had not come to its end by itself.
    rig.wait_for_state(job["id"], "stopped", "succeeded")
    assert "trellis_train" in done.stdout or "verl" in done.stdout, "the preview shows no command"
