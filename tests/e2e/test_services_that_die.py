"""Services are killed while jobs start and run: nothing is lost, nothing is done twice."""

from collections import Counter
from typing import Any

import pytest
from trellis_testing.waiting import wait_until
from trellis_tools.chaos.accounts import Account, read_own

pytestmark = [pytest.mark.training, pytest.mark.faults, pytest.mark.timeout(900)]


def own_account(rig: Any, job: str) -> Account:
    """What the processes of the run wrote down."""
    return read_own(rig.platform.settings.job_dir(job))


@pytest.mark.smoke
def test_a_run_outlives_every_service_but_the_cluster_and_then_it_is_settled(rig: Any) -> None:
    job = rig.launch("grpo", "every service killed", total_steps=10_000)
    seen = rig.wait_for_step(job, 1)

    rig.kill("api", "redis", "worker", "beat")
    rig.wait_for_step(job, seen + 1)
    rig.start()
    assert rig.job(job)["state"] == "running"

    rig.kill("ray")
    rig.start()
    rig.wait_for_state(job, "crashed", timeout_s=90)

    assert rig.job(job)["attempt"] == 1
    assert rig.stored_metrics(job) == own_account(rig, job).points
    assert Counter(rig.stored_lines(job)) == Counter(own_account(rig, job).lines)
    rig.expect_nothing_left(job)


@pytest.mark.parametrize("is_whole", [True, False])
def test_queued_jobs_start_after_the_head_was_killed(rig: Any, is_whole: bool) -> None:
    """Killed with all its processes, or its leader alone: then agents live on, and hold ports of the head."""
    running = rig.launch("sft", "running on the head", total_steps=100_000)
    queued = [rig.launch("sft", f"queued, {number}", total_steps=2) for number in range(2)]
    rig.wait_for_step(running, 1)

    if is_whole:
        rig.kill("ray")
    else:
        rig.kill_leader("ray")
    rig.start()
    rig.wait_for_state(running, "crashed", timeout_s=60)
    rig.wait_for_state(queued[0], "launching", "running", "succeeded", timeout_s=60)

    for job in queued:
        rig.wait_for_state(job, "succeeded")
        assert rig.job(job)["attempt"] == 1
    rig.expect_nothing_left(running)


def test_what_is_killed_comes_back_by_itself_under_the_supervisor(rig: Any) -> None:
    with rig.watched():
        rig.kill("api", "worker")
        wait_until(lambda: all(each.is_healthy for each in rig.supervisor.status()), 180, "all answer again")
        job = rig.launch("sft", "after the restarts", total_steps=2)
        rig.wait_for_state(job, "succeeded")
        components = rig.client.get("/monitoring/dashboard")["components"]

    (told,) = (each for each in components if each["name"] == "supervisor")
    assert {each["name"] for each in told["services"] if each["restarts"]} == {"api", "worker"}
    assert told["health"] == "degraded"


def test_an_api_that_is_killed_during_a_run_loses_nothing(rig: Any) -> None:
    job = rig.launch("grpo", "API killed", total_steps=9)

    for step in (1, 4, 7):
        seen = rig.wait_for_step(job, step)
        rig.kill("api")
        if step == 4:  # the others come back at once
            rig.wait_for_step(job, seen + 2)
        rig.start()
    rig.wait_for_state(job, "succeeded")

    assert rig.job(job)["attempt"] == 1
    assert rig.latest_step(job) == 9
    assert rig.stored_metrics(job) == own_account(rig, job).points
    assert Counter(rig.stored_lines(job)) == Counter(own_account(rig, job).lines)


def test_a_job_starts_exactly_once_though_worker_and_beat_are_killed_while_it_is_launched(rig: Any) -> None:
    job = rig.launch("sft", "worker and beat killed", total_steps=3)
    rig.wait_for_state(job, "launching", "running", timeout_s=30, pause_s=0.005)
    rig.kill("worker", "beat")
    rig.start()

    rig.wait_for_state(job, "succeeded")

    assert rig.job(job)["attempt"] == 1
    begun = [event for event in rig.spool(job) if event.kind == "progress" and event.phase == "preparing"]
    assert len(begun) == 1
    trained = [event for event in rig.spool(job) if event.kind == "metrics" and "train/loss" in event.values]
    assert [event.step for event in trained] == [1, 2, 3]


def test_a_job_that_waits_for_the_slot_runs_after_redis_lost_everything(rig: Any) -> None:
    first = rig.launch("sft", "holds the slot", total_steps=10_000)
    rig.wait_for_step(first, 1)
    second = rig.launch("sft", "waits", total_steps=3)
    third = rig.launch("sft", "waits longer", total_steps=3)
    waiting = [(rig.job(job)["state"], rig.job(job)["queue_position"]) for job in (second, third)]
    rig.client.post(f"/jobs/{third}/stop")

    rig.kill("redis")
    rig.start()
    still = rig.job(second)["state"]
    rig.client.post(f"/jobs/{first}/stop")
    rig.wait_for_state(first, "stopped")
    rig.wait_for_state(second, "succeeded")

    assert waiting == [("queued", 1), ("queued", 2)]
    assert still == "queued"
    assert rig.job(third)["state"] == "stopped"
    # One slot: the second began when the first had ended.
    assert rig.job(second)["launched_at"] >= rig.job(first)["finished_at"]
