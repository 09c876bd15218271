"""Jobs that Ray cannot place: what is missing is said, and they can be stopped."""

from typing import Any

import pytest
from trellis_api.core.settings import Settings
from trellis_api.jobs import service, submit
from trellis_api.jobs.alarms import repository as alarms
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.models import Job
from trellis_api.jobs.queue import service as queue
from trellis_api.jobs.schemas import JobCreate
from trellis_contracts.states import JobState
from trellis_recipes.placement import ResourceDemand
from trellis_testing.kinds_of_jobs import QUEUE
from trellis_testing.waiting import wait_until
from trellis_workers.core.ray_client import RayStatus, get_ray
from trellis_workers.core.settings import get_settings
from trellis_workers.jobs import waiting
from trellis_workers.jobs.launch import launch_queued
from trellis_workers.jobs.reconcile import reconcile


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.0)
    monkeypatch.setattr(waiting, "_INTERVAL_S", 0.0)


def find_alarms(platform: Any, job: Any) -> list[tuple[str, str | None, bool]]:
    with platform.read() as session:
        return [(row.code, row.metric, row.is_active) for row in alarms.list_alarms(session, job_id=job.id)]


def use_platform(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As a restart of the services does."""
    monkeypatch.setenv("TRELLIS_PLATFORM", name)
    get_settings.cache_clear()


def submit_training(platform: Any, settings: Settings) -> Job:
    request = JobCreate(name="test", recipe="sft", model="mdl_aaaaaaaaaaaa", dataset="ds_aaaaaaaaaaaa")
    with platform.write() as session:
        job_id = submit.submit(session, request=request, settings=settings).id
    job: Job = platform.get_job(job_id)
    return job


def read_log(platform: Any, job: Any) -> str:
    with platform.read() as session:
        lines = log_store.read_last(session, job=platform.get_job(job.id), limit=9)
    return "\n".join(line.text for line in lines)


def test_a_job_that_asks_for_more_than_the_cluster_has_stays_queued_and_says_so(on_ray: Any) -> None:
    platform = on_ray(TRELLIS_PLATFORM="cuda", TRELLIS_SLOTS="8")
    job = QUEUE["sft"](platform, gpus=8)

    launch_queued()

    assert platform.get_job(job.id).state == JobState.QUEUED, "a node that is away may come back"
    assert find_alarms(platform, job) == [("not_placed", "GPU", True)]
    assert "it needs 8 GPUs. Free: " in read_log(platform, job)


def test_a_job_for_another_platform_waits_for_it_says_so_and_lets_others_pass(
    on_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a start of the services before the GPUs' driver was there."""
    platform = on_ray(TRELLIS_PLATFORM="cuda", TRELLIS_SLOTS="4")
    for_gpus, given_up = (submit_training(platform, get_settings()) for _ in range(2))
    use_platform(monkeypatch, "cpu")
    for_cpus = submit_training(platform, get_settings())

    launch_queued()
    launch_queued()
    states = [platform.get_job(job.id).state for job in (for_gpus, given_up, for_cpus)]
    said = [find_alarms(platform, job) for job in (for_gpus, given_up, for_cpus)]
    log = read_log(platform, for_gpus)
    with platform.write() as session:
        service.request_stop(session, job_id=given_up.id)
    with platform.read() as session:
        line = queue.read(session, get_settings()).items
    use_platform(monkeypatch, "cuda")
    launch_queued()

    assert states == [JobState.QUEUED, JobState.QUEUED, JobState.LAUNCHING]
    assert said == [[("other_platform", "cuda", True)]] * 2 + [[]]
    assert log.count("configured for the platform cuda") == 1
    assert "restart all services" in log
    assert "stop the job and clone it" in log
    assert [(item.job.id, item.start) for item in line] == [(for_gpus.id, None)]
    assert find_alarms(platform, given_up) == [("other_platform", "cuda", False)]
    assert platform.get_job(for_gpus.id).state == JobState.LAUNCHING
    assert find_alarms(platform, for_gpus) == [("other_platform", "cuda", False)]
    for job in (for_cpus, for_gpus):
        wait_until(lambda job=job: f"{job.id}-1" in platform.list_starts(), 60, "the job starts")
        platform.end_run(job, 0)


@pytest.mark.slow
def test_jobs_that_wait_for_gpus_that_others_hold_say_so_and_can_be_stopped(on_ray: Any) -> None:
    platform, ray = on_ray(TRELLIS_PLATFORM="cuda", TRELLIS_SLOTS="4"), get_ray()
    other = ResourceDemand(cpus=1, gpus=3)
    ray.submit("of_others", entrypoint="exec sleep 300", demand=other, env={}, metadata={})
    wait_until(lambda: ray.find("of_others").status == RayStatus.RUNNING, 60, "the GPUs are taken")
    placed, stopped = QUEUE["sft"](platform, gpus=2), QUEUE["sft"](platform, gpus=2)
    launch_queued()

    reconcile()
    while_waiting = [find_alarms(platform, job) for job in (placed, stopped)]
    with platform.write() as session:
        service.request_stop(session, job_id=stopped.id)
    reconcile()
    when_stopped = platform.get_job(stopped.id).state
    ray.stop("of_others")
    wait_until(lambda: platform.list_starts() == [f"{placed.id}-1"], 90, "the job starts")
    reconcile()

    assert while_waiting == [[("not_placed", "GPU", True)]] * 2
    assert "it needs 1 CPU and 2 GPUs on one node" in read_log(platform, placed)
    assert "1 of 4 GPUs" in read_log(platform, placed)
    assert when_stopped == JobState.STOPPED
    assert [find_alarms(platform, job) for job in (placed, stopped)] == [[("not_placed", "GPU", False)]] * 2
    assert platform.list_starts() == [f"{placed.id}-1"]
    platform.end_run(placed, 0)
