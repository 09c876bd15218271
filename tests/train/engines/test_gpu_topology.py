"""A GRPO job with the processes of a GPU machine: several agent loops, reward workers, storage units.

On a CPU the platform starts one of each, so nothing else here would notice where two of a kind disagree.
"""

from collections.abc import Callable

import pytest

from .conftest import A, Run

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
TOPOLOGY = [
    f"{A}.rollout.agent.num_workers=2",
    "reward.num_workers=2",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=2",
    "data.dataloader_num_workers=1",
]


@pytest.fixture(scope="module")
def finished_run(start_run: Callable[..., Run]) -> Run:
    run = start_run(
        *TOPOLOGY, "trainer.total_training_steps=2", "trainer.test_freq=2", "trainer.val_before_train=False"
    )
    run.wait_for(lambda: any(event["step"] == 2 for event in run.events("metrics")))
    run.process.wait(timeout=240)
    return run


def test_the_run_ends_with_its_steps_and_validation(finished_run: Run) -> None:
    assert finished_run.process.returncode == 0, finished_run.log[-4000:]
    steps = {event["step"]: event["values"] for event in finished_run.events("metrics")}
    assert {1, 2} <= set(steps)
    assert any(name.startswith("val-core/addition/") for name in steps[2])


def test_responses_of_all_agent_loops_come_together_with_their_rewards(finished_run: Run) -> None:
    for event in (each for each in finished_run.events("rollouts") if each["split"] == "train"):
        groups = [rollout["group"] for rollout in event["rollouts"]]
        assert len(groups) == 8
        assert {groups.count(group) for group in groups} == {2}
        for rollout in event["rollouts"]:
            assert rollout["reward_parts"] == {"exact": rollout["score"]}


def test_sampler_and_trainer_agree_on_the_probabilities(finished_run: Run) -> None:
    for event in finished_run.events("metrics"):
        assert event["values"].get("training/rollout_probs_diff_max", 0) < 0.02
