"""How a trainer's process on a CPU is started: its threads' waits and its memory."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from trellis_train.platform.trainer_process import SETTINGS, choose_settings, with_settings

#: Fills 256 MiB and frees them, as passes do; prints how many pages the kernel had to clear the third time.
THIRD_PASS = """
import resource, torch
def count_cleared():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def run_pass():
    activations = [torch.full((1 << 20,), 1.0) for _ in range(64)]
run_pass()
run_pass()
before = count_cleared()
run_pass()
print(count_cleared() - before)
"""


class Group:
    """Takes what verl's group of workers takes."""

    def __init__(self, pool: str, *, worker_env: Mapping[str, str] | None = None, **options: Any) -> None:
        self.pool, self.worker_env, self.options = pool, worker_env, options


def test_a_group_starts_its_processes_with_the_settings() -> None:
    group = with_settings(Group, {})("pool", device_name="cpu")

    assert (group.pool, group.options) == ("pool", {"device_name": "cpu"})
    assert group.worker_env == SETTINGS


def test_what_the_group_or_the_environment_sets_itself_stays() -> None:
    environment = {"GOMP_SPINCOUNT": "0"}

    group = with_settings(Group, environment)("pool", worker_env={"MALLOC_ARENA_MAX": "2", "OWN": "1"})

    assert "GOMP_SPINCOUNT" not in group.worker_env
    assert group.worker_env == {**choose_settings(environment), "MALLOC_ARENA_MAX": "2", "OWN": "1"}


def test_memory_of_a_pass_is_there_for_the_next_one() -> None:
    def count_cleared_pages(settings: Mapping[str, str]) -> int:
        bare = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        command = [sys.executable, "-c", THIRD_PASS]
        return int(subprocess.check_output(command, env={**bare, **settings}, text=True))

    assert count_cleared_pages(SETTINGS) * 10 < count_cleared_pages({})
