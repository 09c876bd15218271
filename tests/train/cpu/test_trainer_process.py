"""How a trainer's process on a CPU keeps its memory."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from trellis_train.cpu.trainer_process import MEMORY, with_settings

#: Fills 256 MiB and frees them, as a pass does; prints how many of them the process has then.
AFTER_A_PASS = """
import psutil, torch
torch.full((16,), 1.0)
before = psutil.Process().memory_info().rss
activations = [torch.full((1 << 20,), 1.0) for _ in range(64)]
del activations
print((psutil.Process().memory_info().rss - before) >> 20)
"""


class Group:
    """Takes what verl's group of workers takes."""

    def __init__(self, pool: str, *, worker_env: Mapping[str, str] | None = None, **options: Any) -> None:
        self.pool, self.worker_env, self.options = pool, worker_env, options


def test_a_group_starts_its_processes_with_the_settings() -> None:
    group = with_settings(Group, {})("pool", device_name="cpu")

    assert (group.pool, group.options) == ("pool", {"device_name": "cpu"})
    assert group.worker_env == MEMORY


def test_what_the_group_or_the_environment_sets_itself_stays() -> None:
    environment = {"MALLOC_TRIM_THRESHOLD_": "0"}

    group = with_settings(Group, environment)("pool", worker_env={"MALLOC_ARENA_MAX": "2", "OWN": "1"})

    rest = {name: value for name, value in MEMORY.items() if name not in environment}
    assert group.worker_env == {**rest, "MALLOC_ARENA_MAX": "2", "OWN": "1"}


@pytest.mark.slow
def test_memory_of_a_pass_is_there_for_the_next_one() -> None:
    def measure_kept_mib(settings: Mapping[str, str]) -> int:
        bare = {name: value for name, value in os.environ.items() if name not in MEMORY}
        command = [sys.executable, "-c", AFTER_A_PASS]
        return int(subprocess.check_output(command, env={**bare, **settings}, text=True))

    assert measure_kept_mib(MEMORY) > 240
    assert measure_kept_mib({}) < 64
