"""Signals of trouble, computed from what a step sampled."""

import math

import pytest
import torch
from trellis_train.hooks.signals import mean_importance_weight, share_uniform_groups


def test_the_importance_weight_is_the_mean_over_tokens_of_all_responses() -> None:
    trainer = [torch.tensor([-1.0, -2.0]), torch.tensor([-0.5])]
    sampler = [torch.tensor([-1.0, -2.0 - math.log(3)]), torch.tensor([-0.5 + math.log(2)])]
    masks = [torch.tensor([1, 1]), torch.tensor([1])]

    assert mean_importance_weight(trainer, sampler, masks) == pytest.approx((1 + 3 + 0.5) / 3)


def test_tokens_that_the_policy_did_not_write_do_not_count() -> None:
    trainer, sampler = [torch.tensor([-1.0, 0.0])], [torch.tensor([-1.0, -50.0])]

    assert mean_importance_weight(trainer, sampler, [torch.tensor([1, 0])]) == pytest.approx(1.0)
    assert mean_importance_weight(trainer, sampler, [torch.tensor([0, 0])]) is None


def test_groups_are_uniform_where_all_scores_are_equal() -> None:
    groups = ["a", "a", "b", "b", "c", "c", "d", "d"]

    assert share_uniform_groups(groups, [0, 0, 1, 1, 0, 1, 0.5, 0.25]) == 0.5


def test_a_group_of_one_is_not_called_uniform() -> None:
    assert share_uniform_groups(["a", "b"], [0.0, 1.0]) is None
