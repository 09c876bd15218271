"""A run is killed, or told to stop: the job says why, nothing of it is left, and it can go on."""

import time
from typing import Any

import pytest

pytestmark = [pytest.mark.training, pytest.mark.faults, pytest.mark.timeout(900)]

SETTLED_WITHIN_S = 60.0


@pytest.mark.parametrize("module", ["trellis_train.engines.sft", "trellis_train.entrypoint"])
def test_a_killed_run_is_settled_with_its_reason_and_gives_its_slot_back(rig: Any, module: str) -> None:
    job = rig.launch("sft", f"{module} killed", total_steps=10_000)
    step = rig.wait_for_step(job, 2)
    process = rig.find_process(job, module)
    assert process is not None

    process.kill()
    killed_at = time.monotonic()
    ended = rig.wait_for_state(job, "crashed", "failed", timeout_s=SETTLED_WITHIN_S)
    print(f"settled after {time.monotonic() - killed_at:.1f} s: {ended['failure']['reason']}")

    assert ended["state"] == "crashed"
    assert "kill" in ended["failure"]["reason"].lower()
    assert ended["failure"]["last_lines"]
    assert ended["can_resume"]
    # What was measured before it died has arrived.
    assert max(at for _, at in rig.stored_metrics(job)) == rig.latest_step(job) >= step
    rig.expect_nothing_left(job)


@pytest.mark.parametrize(
    ("recipe", "total_steps", "stop_after", "key"),
    [
        ("sft", 120, 10, "train/loss"),
        ("grpo", 6, 2, "actor/pg_loss"),
    ],
)
def test_a_stopped_run_leaves_a_checkpoint_and_continues_at_the_next_step(
    rig: Any, recipe: str, total_steps: int, stop_after: int, key: str
) -> None:
    job = rig.launch(recipe, f"{recipe} stopped and resumed", total_steps=total_steps)
    rig.wait_for_step(job, stop_after)

    rig.client.post(f"/jobs/{job}/stop")
    asked_at = time.monotonic()
    rig.wait_for_state(job, "stopped")
    print(f"stopped after {time.monotonic() - asked_at:.1f} s")
    left_at = rig.latest_step(job)
    checkpoints = [each["step"] for each in rig.client.pages(f"/jobs/{job}/checkpoints")]
    rig.expect_nothing_left(job)
    resumed = rig.client.post(f"/jobs/{job}/resume")
    rig.wait_for_state(job, "succeeded")

    assert stop_after <= left_at < total_steps
    assert checkpoints == [left_at]
    assert (resumed["attempt"], resumed["resume_step"]) == (2, left_at)
    assert steps_of(rig, job, 1, key) == list(range(1, left_at + 1))
    assert steps_of(rig, job, 2, key) == list(range(left_at + 1, total_steps + 1))
    (series,) = rig.client.get(f"/jobs/{job}/metrics", keys=key)["series"]
    assert series["steps"] == list(range(1, total_steps + 1))
    rig.expect_nothing_left(job)


def steps_of(rig: Any, job: str, attempt: int, key: str) -> list[int]:
    """The steps that an attempt made, in the order in which it made them."""
    events = rig.spool(job, attempt)
    return [event.step for event in events if event.kind == "metrics" and key in event.values]
