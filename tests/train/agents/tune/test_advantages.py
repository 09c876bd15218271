"""Advantages compare sessions, and every branch of a session gets its session's (C6)."""

from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from trellis_train.hooks.branches import compare_sessions
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

from verl import DataProto

TOKENS = 5
#: (key, reward, mask): two tasks of four sessions; "b" has a session that failed and one of three branches.
SAMPLES = [
    ("a_0_0", 1.0, [1, 1, 0, 1, 0]),
    ("a_1_0", 0.0, [1, 0, 0, 0, 0]),
    ("a_1_1", 0.0, [0, 0, 1, 1, 1]),
    ("a_2_0", 0.5, [1, 1, 1, 1, 1]),
    ("a_3_0", 0.25, [0, 1, 1, 0, 0]),
    ("b_0_2", 1.0, [1, 1, 1, 0, 0]),
    ("b_0_0", 1.0, [1, 1, 0, 0, 0]),
    ("b_0_1", 1.0, [0, 1, 0, 0, 0]),
    ("b_1_0", 0.0, [0, 0, 0, 0, 0]),
    ("b_2_0", 0.4, [1, 0, 0, 0, 0]),
    ("b_3_0", 0.1, [0, 0, 1, 0, 0]),
]
#: The rewards that are compared, by task.
GROUPS = {"a": {0: 1.0, 1: 0.0, 2: 0.5, 3: 0.25}, "b": {0: 1.0, 2: 0.4, 3: 0.1}}


def as_batch(samples: list[tuple[str, float, list[int]]]) -> DataProto:
    mask = torch.tensor([row for _, _, row in samples])
    rewards = torch.zeros(len(samples), TOKENS)
    rewards[:, -1] = torch.tensor([reward for _, reward, _ in samples])
    uids = np.array([key.rsplit("_", 2)[0] for key, _, _ in samples], dtype=object)
    return DataProto.from_dict(
        tensors={"response_mask": mask, "token_level_rewards": rewards}, non_tensors={"uid": uids}
    )


def compute(samples: list[tuple[str, float, list[int]]], estimator: str, **options: Any) -> Any:
    by_session = compare_sessions(compute_advantage, compute_advantage_for_multi_trajectories)
    data = by_session(
        as_batch(samples),
        batch_keys=[key for key, _, _ in samples],
        adv_estimator=estimator,
        num_repeat=4,
        config=OmegaConf.create({}),
        **options,
    )
    return data.batch["advantages"].numpy()


def reference(estimator: str) -> np.ndarray[Any, Any]:
    """Each task's sessions by themselves, in plain NumPy; the broadcast over branches and tokens."""
    expected = np.zeros((len(SAMPLES), TOKENS))
    for row, (key, _, mask) in enumerate(SAMPLES):
        uid, session, _ = key.rsplit("_", 2)
        group = GROUPS[uid]
        if int(session) not in group:
            continue
        own, rewards = group[int(session)], np.array(list(group.values()))
        if estimator == "grpo":
            advantage = (own - rewards.mean()) / (rewards.std(ddof=1) + 1e-6)
        else:
            advantage = own - (rewards.sum() - own) / (len(rewards) - 1)
        expected[row] = advantage * np.array(mask)
    return expected


@pytest.mark.parametrize("estimator", ["grpo", "rloo"])
def test_sessions_are_compared_once_whatever_their_number_of_branches(estimator: str) -> None:
    np.testing.assert_allclose(compute(SAMPLES, estimator), reference(estimator), atol=1e-5)


def test_branches_of_a_session_have_one_advantage_on_all_their_sampled_tokens() -> None:
    found = compute(SAMPLES, "grpo")
    values = {float(value) for row in (5, 6, 7) for value in found[row] if value != 0}
    assert len(values) == 1


def test_a_session_that_failed_changes_nothing_for_the_others() -> None:
    without = [sample for sample in SAMPLES if sample[0] != "b_1_0"]
    rows = [row for row, sample in enumerate(SAMPLES) if sample[0] != "b_1_0"]
    np.testing.assert_allclose(compute(SAMPLES, "grpo")[rows], compute(without, "grpo"), atol=1e-6)


def test_a_session_alone_in_its_group_has_nothing_to_be_compared_with() -> None:
    alone = [("a_0_0", 1.0, [1] * TOKENS), ("a_1_0", 0.0, [0] * TOKENS)]
    assert not compute(alone, "grpo").any()


def test_a_batch_of_nothing_but_failures_teaches_nothing() -> None:
    assert not compute([("a_0_0", 0.0, [0] * TOKENS), ("a_1_0", 0.0, [0] * TOKENS)], "grpo").any()


def test_without_branches_it_is_what_verl_computes() -> None:
    single = [sample for sample in SAMPLES if sample[0].startswith("a") and sample[0] != "a_1_0"]
    theirs = compute_advantage_for_multi_trajectories(
        as_batch(single),
        batch_keys=[key for key, _, _ in single],
        adv_estimator=AdvantageEstimator.GRPO,
        num_repeat=4,
    )
    np.testing.assert_allclose(compute(single, "grpo"), theirs.batch["advantages"].numpy(), atol=1e-6)
