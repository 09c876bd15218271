"""What each kind of job asks Ray for when it is submitted."""

from typing import Any

import pytest
from trellis_contracts.states import JobState
from trellis_recipes.placement import ResourceDemand
from trellis_testing.kinds_of_jobs import QUEUE
from trellis_workers.core.ray_client import RayJobs
from trellis_workers.jobs.launch import launch_queued


@pytest.fixture
def demands(monkeypatch: pytest.MonkeyPatch) -> dict[str, ResourceDemand]:
    """Of the submissions that were made, by their number; no cluster receives them."""
    found: dict[str, ResourceDemand] = {}

    def note(_: RayJobs, submission_id: str, *, demand: ResourceDemand, **__: Any) -> bool:
        found[submission_id] = demand
        return True

    monkeypatch.setattr(RayJobs, "ping", lambda _: None)
    monkeypatch.setattr(RayJobs, "submit", note)
    return found


@pytest.mark.parametrize(
    ("kind", "gpus", "demand"),
    [
        ("sft", 2, ResourceDemand(cpus=1, gpus=2)),
        ("dpo", 2, ResourceDemand(cpus=1, gpus=2)),
        ("reward_model", 2, ResourceDemand(cpus=1, gpus=2)),
        ("agent_retrieval", 1, ResourceDemand(cpus=1, gpus=1)),
        ("evaluation", 2, ResourceDemand(cpus=1, gpus=2)),
        ("serve", 1, ResourceDemand(cpus=1, gpus=1)),
        # Written in main memory, whatever the training ran on.
        ("export", 2, ResourceDemand(cpus=1, gpus=0)),
        # Its GPUs are in placement groups that verl makes.
        ("grpo", 2, ResourceDemand(cpus=1, gpus=0)),
    ],
)
def test_a_job_asks_ray_for_what_its_entrypoint_uses(
    kind: str, gpus: int, demand: ResourceDemand, install: Any, demands: dict[str, ResourceDemand]
) -> None:
    platform = install(TRELLIS_PLATFORM="cuda", TRELLIS_SLOTS="2")
    job = QUEUE[kind](platform, gpus=gpus)

    launch_queued()

    launched = platform.get_job(job.id)
    assert launched.state == JobState.LAUNCHING, launched.reason
    assert demands == {f"{job.id}-1": demand}
