"""Shards of several ranks, cut by FSDP itself, put together again."""

import json
from pathlib import Path

import pytest
import torch
from trellis_testing.ranks import run_on_two_ranks
from trellis_train.export.errors import CheckpointIncomplete
from trellis_train.export.shards import gather

pytestmark = [pytest.mark.training, pytest.mark.timeout(300)]
#: Each rank of a real process group saves its part, as verl does; sizes that do not divide evenly too.
SAVE = """
import os, sys, torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
model.register_buffer("a_counter", torch.tensor(4.5))
if rank == 0:
    torch.save(model.state_dict(), sys.argv[1] + "/whole.pt")
mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("fsdp",))
fully_shard(model, mesh=mesh)
torch.save(model.state_dict(), f"{sys.argv[1]}/model_world_size_{ranks}_rank_{rank}.pt")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def shards(tmp_path: Path, base: Path) -> Path:
    run_on_two_ranks(SAVE, tmp_path)
    (tmp_path / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": 2}))
    (tmp_path / "huggingface").symlink_to(base)
    return tmp_path


def test_the_parts_of_two_ranks_are_the_whole_again(shards: Path) -> None:
    state = gather(shards)

    whole = torch.load(shards / "whole.pt")
    assert set(state) == set(whole)
    for key, tensor in whole.items():
        assert state[key].dtype == tensor.dtype
        torch.testing.assert_close(state[key], tensor, atol=0, rtol=0)


def test_a_missing_rank_is_named(shards: Path) -> None:
    (shards / "model_world_size_2_rank_1.pt").unlink()

    with pytest.raises(CheckpointIncomplete, match="model_world_size_2_rank_1"):
        gather(shards)
