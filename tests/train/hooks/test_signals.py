"""Signals of trouble, computed from what a step sampled."""

import math

import pytest
import torch
from trellis_train.hooks.signals import mean_importance_weight


def test_the_importance_weight_is_the_mean_over_tokens_of_all_responses() -> None:
    trainer = [torch.tensor([-1.0, -2.0]), torch.tensor([-0.5])]
    sampler = [torch.tensor([-1.0, -2.0 - math.log(3)]), torch.tensor([-0.5 + math.log(2)])]
    masks = [torch.tensor([1, 1]), torch.tensor([1])]

    assert mean_importance_weight(trainer, sampler, masks) == pytest.approx((1 + 3 + 0.5) / 3)


def test_tokens_that_the_policy_did_not_write_do_not_count() -> None:
    trainer, sampler = [torch.tensor([-1.0, 0.0])], [torch.tensor([-1.0, -50.0])]

    assert mean_importance_weight(trainer, sampler, [torch.tensor([1, 0])]) == pytest.approx(1.0)
    assert mean_importance_weight(trainer, sampler, [torch.tensor([0, 0])]) is None
