"""A reward model beside RL on a cluster: on a GPU of its own job, whichever node that is on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from trellis_contracts.spec import ModelSource
from trellis_testing.reward_models import save_reward_model
from trellis_train.rewards.job_gpu import find_gpu_bundle
from trellis_train.rewards.reward_model import RewardModelScorer
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable

# A cluster of two nodes, and a process that imports torch and transformers.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
OPTIONS = {"squash": True, "max_tokens": 64, "batch_size": 4}


@pytest.fixture(scope="module")
def reward_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_reward_model(tmp_path_factory.mktemp("reward-model"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """This process is the driver, on a head without GPUs; another node has four logical ones."""
    import ray
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 0})
    nodes.add_node(num_cpus=14, num_gpus=4)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def groups(cluster: Any) -> Iterator[list[Any]]:
    """verl's placement groups on two GPUs, where another holds the first two."""
    import ray
    from verl.single_controller.ray.base import RayResourcePool

    @ray.remote(num_gpus=2)
    class OtherJob:
        def list_gpus(self) -> list[str]:
            found: list[str] = ray.get_runtime_context().get_accelerator_ids()["GPU"]
            return found

    other = cast(Any, OtherJob).remote()
    assert ray.get(other.list_gpus.remote()) == ["0", "1"]
    pool = RayResourcePool(process_on_nodes=[2], max_colocate_count=3)
    made = pool.get_placement_groups()
    yield made
    for group in made:
        ray.util.remove_placement_group(group)
    ray.kill(other)


def score(folder: Path) -> tuple[list[float], str]:
    """Scores of two responses, and the devices that the model's process sees."""

    async def go() -> tuple[list[float], str]:
        scorer = RewardModelScorer(ModelSource(model_id="mdl_x", path=str(folder)), **OPTIONS)
        try:
            scores = await asyncio.gather(*(scorer.score(Sample(response=text)) for text in ("4", "22")))
            return list(scores), await scorer._process._actor.load.remote()
        finally:
            await scorer.close()

    return asyncio.run(go())


def test_a_reward_model_is_on_the_last_gpu_of_its_job(
    groups: list[Any], reward_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    (group,) = groups

    scores, devices = score(reward_model_folder)

    assert find_gpu_bundle()[1] == group.bundle_count - 1
    assert all(0 < each < 1 for each in scores)
    assert devices in ("2", "3"), "the first two belong to another job"


def test_a_job_without_gpus_is_refused(
    cluster: Any, reward_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERL_PLATFORM", raising=False)

    with pytest.raises(RewardUnusable, match="no placement group with GPUs"):
        score(reward_model_folder)
