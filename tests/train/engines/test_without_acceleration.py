"""Reinforcement learning on a CPU without the layer that makes it faster; test_sft.py has fine-tuning."""

from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_contracts.spec import EXIT_SUCCEEDED
from trellis_testing.without_layer import without_layer

from .conftest import Run

#: Differs between any two responses, so that an untrained model learns from it.
REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return sum(map(ord, solution_str)) % 101 / 101
"""

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]


def test_a_run_trains_and_its_weights_reach_the_sampler(
    start_run: Callable[..., Run], tmp_path: Path
) -> None:
    (tmp_path / "reward.py").write_text(REWARD)

    run = start_run(
        f"reward.custom_reward_function.path={tmp_path}/reward.py",
        "trainer.total_training_steps=2",
        "trainer.test_freq=-1",
        "trainer.val_before_train=False",
        environment=without_layer(tmp_path),
    )

    assert run.process.wait(timeout=600) == EXIT_SUCCEEDED, run.log[-4000:]
    steps = {event["step"]: event["values"] for event in run.events("metrics")}
    assert list(steps) == [1, 2]
    for values in steps.values():
        assert values["actor/grad_norm"] > 0
        assert values["training/rollout_probs_diff_max"] < 0.02
    assert "started without the fork server" not in run.log
