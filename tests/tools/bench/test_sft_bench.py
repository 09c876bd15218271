"""The arithmetic of the comparison of SFT, and the memory of a command."""

import subprocess
import sys
import time

import pytest
from trellis_cli.errors import Problem
from trellis_tools.bench.peak_memory import PeakMemory
from trellis_tools.bench.sft import speed_of

MIB = 2**20
#: Holds 200 MiB in a child that outlives the process which started it.
ORPHAN = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "held = bytearray(b'1') * (200 << 20); print(1); input()"],
                         stdin=sys.stdin, stdout=subprocess.PIPE)
child.stdout.readline()
"""


def test_speed_counts_the_steps_after_the_warm_up() -> None:
    assert speed_of([10.0, 12.0, 14.0, 18.0], [999, 100, 200, 300], warm_up=1) == pytest.approx(600 / 8)
    assert speed_of([10.0, 12.0, 14.0, 18.0], [999, 100, 200, 300], warm_up=2) == pytest.approx(500 / 6)


def test_a_run_too_short_to_measure_is_said_to_be_so() -> None:
    with pytest.raises(Problem, match="only 2 steps"):
        speed_of([0.0, 1.0], [1, 1], warm_up=1)


def test_the_peak_counts_processes_whose_parent_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis_tools.bench.peak_memory.PAUSE_S", 0.05)

    with PeakMemory() as memory:
        parent = subprocess.Popen([sys.executable, "-c", ORPHAN], stdin=subprocess.PIPE)
        parent.wait(timeout=60)
        ended = time.monotonic() + 30
        while memory.peak_bytes < 200 * MIB and time.monotonic() < ended:
            time.sleep(0.05)
        assert parent.stdin is not None
        parent.stdin.close()

    assert 200 * MIB <= memory.peak_bytes < 400 * MIB
