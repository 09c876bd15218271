"""Process groups on a CPU: each works, and they do not look for messages in a thread each."""

import json
from pathlib import Path

import pytest
from trellis_testing.ranks import run_on_two_ranks

pytestmark = [pytest.mark.training, pytest.mark.timeout(300)]
#: Sums over the world and over groups of it; prints the sums and how many threads look for messages.
GROUPS = """
import json, os, sys
import torch
import torch.distributed as dist
if sys.argv[2] == "shared":
    from trellis_train.compat.applying import apply
    from trellis_train.cpu.changes import GLOO
    apply(GLOO)
    apply(GLOO)
dist.init_process_group("cpu:gloo")
rank = dist.get_rank()
groups = [None, dist.new_group([0, 1]), dist.new_group([1, 0]), dist.new_group([0]), dist.new_group([1])]
sums = []
for group in groups[:3] + [groups[3 + rank]]:
    value = torch.tensor([10.0 ** rank])
    dist.all_reduce(value, group=group)
    sums.append(value.item())
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
if rank == 1:
    print(json.dumps({"sums": sums, "loops": names.count("gloo_tcp_loop")}))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("way", "interfaces", "loops"),
    [("shared", "", 1), ("shared", "lo", 1), ("plain", "", 4)],
    ids=["shared", "shared, of an interface", "torch's own"],
)
def test_groups_work_and_their_threads_are_counted(
    tmp_path: Path, way: str, interfaces: str, loops: int
) -> None:
    printed = run_on_two_ranks(
        GROUPS, tmp_path, way, environment={"GLOO_SOCKET_IFNAME": interfaces} if interfaces else None
    )

    assert json.loads(printed.splitlines()[-1]) == {"sums": [11.0, 11.0, 11.0, 10.0], "loops": loops}
