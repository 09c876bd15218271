"""A cluster of two nodes, as Compose starts it: a head without GPUs, and a node with four (logical ones)."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from trellis_api.core.ray_cluster import RayNode, Waiting, list_nodes, list_waiting, look_at_nodes
from trellis_api.jobs import service
from trellis_api.jobs.alarms.placement import find_shortage
from trellis_api.jobs.models import Job
from trellis_contracts.attempt import COMPOSITION_FILE
from trellis_testing.kinds_of_jobs import QUEUE
from trellis_testing.stub_cluster import RayHead, joined_node, running_head
from trellis_testing.waiting import wait_until
from trellis_workers.core.ray_client import get_ray
from trellis_workers.jobs.launch import _write_attempt, launch_queued

# Two nodes take half a minute to start on two cores.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


#: verl's groups ask for three CPUs a GPU.
NODE = ("--num-cpus=14", "--num-gpus=4")


@pytest.fixture(scope="module")
def ray_head() -> Iterator[RayHead]:
    with (
        running_head("--num-cpus=8", "--num-gpus=0") as head,
        joined_node(head, *NODE),
    ):
        yield head


def start_all(platform: Any, jobs: list[Job]) -> dict[str, dict[str, str | None]]:
    """Launch what is queued, and wait; what each run saw of its environment, by its job's id."""
    launch_queued()
    places = {job.id: platform.attempt_dir(job) / "pid" for job in jobs}
    wait_until(lambda: all(path.exists() for path in places.values()), 120, "all runs start")
    return {job.id: json.loads((platform.attempt_dir(job) / "place").read_text()) for job in jobs}


def node_of(job: Job) -> str:
    """Ray's id of the node that runs the job's entrypoint."""
    with get_ray()._calling() as client:
        node: str = client.get_job_info(service.submission_id(job)).driver_node_id
    return node


def nodes_of(platform: Any) -> list[RayNode]:
    return list_nodes(platform.settings.ray_dashboard_url)


def test_jobs_run_where_the_gpus_are_and_share_none(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_PLATFORM="cuda", TRELLIS_SLOTS="4")
    pair, single, evaluation = (
        QUEUE["sft"](platform, gpus=2), QUEUE["dpo"](platform), QUEUE["evaluation"](platform),
    )  # fmt: skip

    places = start_all(platform, [pair, single, evaluation])

    devices = {job_id: (place["CUDA_VISIBLE_DEVICES"] or "").split(",") for job_id, place in places.items()}
    assert [len(devices[job.id]) for job in (pair, single, evaluation)] == [2, 1, 1]
    assert sorted(number for each in devices.values() for number in each) == ["0", "1", "2", "3"]
    assert {node_of(job) for job in (pair, single, evaluation)} == {
        node.node_id for node in nodes_of(platform) if node.gpus
    }
    # With more, each of the ranks would start as many threads as there are ranks.
    assert {place["OMP_NUM_THREADS"] for place in places.values()} == {"1"}
    for job in (pair, single, evaluation):
        platform.end_run(job, 0)


def test_the_driver_of_rl_takes_no_gpu(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_PLATFORM="cuda", TRELLIS_SLOTS="4")
    job = QUEUE["grpo"](platform, gpus=4)

    places = start_all(platform, [job])

    assert places[job.id]["CUDA_VISIBLE_DEVICES"] is None
    assert sum(node.count_free("GPU") for node in nodes_of(platform)) == 4
    platform.end_run(job, 0)


def test_rl_on_two_nodes_of_four_gpus_is_placed(on_ray: Any, ray_head: RayHead) -> None:
    platform = on_ray(TRELLIS_PLATFORM="cuda", TRELLIS_SLOTS="8")
    with joined_node(ray_head, *NODE), joined_driver(ray_head):
        # What was seen before the node joined is kept for a while.
        look_at_nodes(platform.settings.ray_dashboard_url)
        job = QUEUE["grpo"](platform, gpus=8)
        spec = _write_attempt(platform.settings, job, "token")

        trainer = read_record(platform, job)["config"]["trainer"]
        groups = make_groups([trainer["n_gpus_per_node"]] * trainer["nnodes"])

        assert (trainer["nnodes"], trainer["n_gpus_per_node"], spec.gpus) == (2, 4, 8)
        assert len({group["bundles_to_node_id"][0] for group in groups}) == 2
        assert {group["state"] for group in groups} == {"CREATED"}


def test_groups_that_do_not_fit_say_what_is_missing(on_ray: Any, ray_head: RayHead) -> None:
    platform = on_ray()
    with joined_driver(ray_head) as driver_id:
        make_groups([8], timeout_s=0)

        waiting = wait_until(
            lambda: list_waiting(ray_head.dashboard_url, driver_id), 30, "Ray lists the group"
        )
        shortage = find_shortage(waiting, nodes_of(platform))

    assert waiting == [Waiting({"CPU": 24.0, "GPU": 8.0}, is_packed=True)]
    assert shortage is not None
    assert (shortage.resource, shortage.needed) in {("GPU", 8), ("CPU", 24)}
    assert "it needs 24 CPUs and 8 GPUs on one node" in shortage.message


@contextlib.contextmanager
def joined_driver(head: RayHead) -> Iterator[str]:
    """Make this process a driver of the cluster; Ray's number of it."""
    import ray

    ray.init(address=head.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield ray.get_runtime_context().get_job_id()
    finally:
        ray.shutdown()


def make_groups(gpus_by_node: list[int], timeout_s: float = 60) -> list[dict[str, Any]]:
    """Ask for placement groups as verl's trainers do, a node's GPUs in each; what Ray says of them."""
    import ray
    from verl.single_controller.ray.base import ResourcePoolManager

    bundle = {"CPU": ResourcePoolManager.max_colocate_count, "GPU": 1}
    groups = [
        ray.util.placement_group([dict(bundle)] * count, strategy="STRICT_PACK") for count in gpus_by_node
    ]
    for group in groups:
        group.wait(timeout_s)
    return [ray.util.placement_group_table(group) for group in groups]


def read_record(platform: Any, job: Job) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((platform.attempt_dir(job) / COMPOSITION_FILE).read_text())
    return record
