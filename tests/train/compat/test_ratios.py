"""The ratio of an update's probabilities is reported beside verl's; it shows a wrong rollout engine."""

import math
from typing import Any

import pytest
import torch
from tensordict import TensorDict
from trellis_train.compat.ratios import RATIO_MEAN, choosing_measured, mean_ratio
from verl.workers.config import ActorConfig, PolicyLossConfig
from verl.workers.utils import losses

LENGTHS = [3, 5]


def jagged(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def lose(loss_mode: str, *, shift: float) -> tuple[Any, dict[str, Any]]:
    """verl's whole loss of two responses whose old log-probabilities are ``shift`` below the new ones."""
    torch.manual_seed(0)
    new = [torch.rand(length) - 2 for length in LENGTHS]
    responses = jagged([torch.arange(length) for length in LENGTHS])
    prompts = jagged([torch.arange(2) for _ in LENGTHS])
    data = TensorDict(
        {
            "prompts": prompts,
            "responses": responses,
            "input_ids": jagged([torch.arange(2 + length) for length in LENGTHS]),
            "response_mask": jagged([torch.ones(length) for length in LENGTHS]),
            "old_log_probs": jagged([row - shift for row in new]),
            "advantages": jagged([torch.ones(length) for length in LENGTHS]),
            "attention_mask": jagged([torch.ones(2 + length) for length in LENGTHS]),
        },
        batch_size=len(LENGTHS),
    )
    for name, value in (("dp_size", 1), ("batch_num_tokens", None), ("global_batch_size", None)):
        data.set_non_tensor(name, value)
    # Of each row the model tells the tokens' log-probabilities one place ahead of them.
    rows = [torch.cat([torch.zeros(1), row, torch.zeros(1)]) for row in new]
    config = ActorConfig(
        strategy="fsdp2",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        use_dynamic_bsz=False,
        policy_loss=PolicyLossConfig(loss_mode=loss_mode),
    )
    return losses.ppo_loss(config, {"log_probs": jagged(rows)}, data)


@pytest.fixture
def measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patch, for one test."""
    monkeypatch.setattr(losses, "get_policy_loss_fn", choosing_measured(losses.get_policy_loss_fn))


@pytest.mark.usefixtures("measures")
@pytest.mark.parametrize("loss_mode", ["vanilla", "gspo", "cispo", "sapo", "gpg"])
@pytest.mark.parametrize("shift", [0.0, math.log(3), -math.log(4)])
def test_every_loss_tells_how_far_the_old_probabilities_are_off(loss_mode: str, shift: float) -> None:
    _, metrics = lose(loss_mode, shift=shift)

    assert metrics[RATIO_MEAN].aggregate() == pytest.approx(math.exp(shift), rel=1e-5)


def test_the_loss_and_its_metrics_stay_verls(request: pytest.FixtureRequest) -> None:
    bare, told = lose("vanilla", shift=0.1)
    request.getfixturevalue("measures")

    loss, metrics = lose("vanilla", shift=0.1)

    assert torch.equal(loss, bare)
    assert {name: each.aggregate() for name, each in metrics.items() if name != RATIO_MEAN} == {
        name: each.aggregate() for name, each in told.items()
    }


def test_tokens_that_the_policy_did_not_write_do_not_count() -> None:
    old, new = torch.tensor([[-1.0, -50.0]]), torch.tensor([[-1.0 + math.log(2), 0.0]])

    assert mean_ratio(new, old, torch.tensor([[1, 0]])) == pytest.approx(2.0)
    assert mean_ratio(new, old, torch.tensor([[0, 0]])) is None


def test_a_ratio_beyond_all_bounds_is_a_number() -> None:
    ratio = mean_ratio(torch.tensor([[0.0]]), torch.tensor([[-1000.0]]), torch.tensor([[1]]))

    assert ratio is not None
    assert math.isfinite(ratio)
