"""Spans of all ranks reach the one that reports."""

import subprocess
import sys
from pathlib import Path

from trellis_train.hooks.rank_spans import gather_lanes

RANKS = 2
RANK = """
import sys
from torch import distributed
from trellis_train.hooks.rank_spans import gather_lanes

rank, store = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
for lane in gather_lanes([("train_batch", float(rank), rank + 1.0)]):
    print(lane.name, lane.place.pid, lane.spans)
distributed.destroy_process_group()
"""


def test_every_rank_gets_the_spans_of_all(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", RANK, str(rank), str(tmp_path / "store")] for rank in range(RANKS)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    told = [process.communicate(timeout=240)[0].strip() for process in running]

    lanes = [
        f"rank {rank} {process.pid} {[('train_batch', float(rank), rank + 1.0)]}"
        for rank, process in enumerate(running)
    ]
    assert told == ["\n".join(lanes)] * RANKS


def test_a_single_process_gathers_nothing() -> None:
    assert gather_lanes([("train_batch", 0.0, 1.0)]) == []
