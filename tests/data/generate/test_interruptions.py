"""A run that is killed pays for nothing twice and ends as if nothing had happened."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from trellis_testing.chat_endpoint import ChatEndpoint

METHOD = {"kind": "rejection-sampling", "samples": 3, "check": {"kind": "numeric"}}


@pytest.mark.faults
def test_a_killed_run_goes_on_and_asks_again_only_what_was_under_way(
    endpoint: ChatEndpoint, settings: Any, sums: Path, tmp_path: Path, run: Any
) -> None:
    asked = settings(METHOD, concurrency=2)
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(asked.model_dump(mode="json")))
    endpoint.delay_s = 0.1
    command = [
        sys.executable,
        "-m",
        "trellis_cli",
        "data",
        "generate",
        file,
        "-i",
        sums,
        "-o",
        tmp_path / "out",
    ]
    process = subprocess.Popen(list(map(str, command)))
    deadline = time.monotonic() + 90
    while len(endpoint.requests) < 20 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    time.sleep(0.3)
    before = len(endpoint.requests)
    had_rows = (tmp_path / "out" / "output").exists()

    endpoint.delay_s = 0.0
    report = run(asked)

    assert (before < 60, had_rows) == (True, False)
    assert report.rows == pq.read_table(tmp_path / "out/output/train").num_rows == 20
    assert 60 <= len(endpoint.requests) <= 62
    # What was under way may have cost something: the bound counts it, the cost does not.
    assert report.cost == pytest.approx(60 * 120 / 1_000_000)
    assert report.cost_unsettled >= 0
