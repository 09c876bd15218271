"""Losses and gradients as verl computes them for each recipe, against the papers' formulas."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig

from . import references as paper
from .conftest import RL_RECIPES, configure
from .references import Array, Batch, Loss, make_batch

LOSSES: dict[str, Loss] = {
    **dict.fromkeys(
        (
            "ppo",
            "grpo",
            "dr_grpo",
            "dapo",
            "rloo",
            "remax",
            "opo",
            "reinforce_plus_plus",
            "reinforce_plus_plus_baseline",
        ),
        paper.clipped_surrogate,
    ),
    "gspo": paper.clipped_sequence,
    "cispo": paper.clipped_weight,
    "sapo": paper.soft_gate,
    "gpg": paper.plain_gradient,
}
#: How each paper averages, and the ranges it clips to.
PAPERS_SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"loss_agg_mode": "token-mean", "clip_ratio_low": 0.2, "clip_ratio_high": 0.2},
    "grpo": {"loss_agg_mode": "seq-mean-token-mean", "clip_ratio_low": 0.2, "clip_ratio_high": 0.2},
    "dr_grpo": {"loss_agg_mode": "seq-mean-token-sum-norm", "use_kl_loss": False},
    "dapo": {
        "loss_agg_mode": "token-mean",
        "clip_ratio_low": 0.2,
        "clip_ratio_high": 0.28,
        "use_kl_loss": False,
    },
    "gspo": {
        "loss_agg_mode": "seq-mean-token-mean",
        "clip_ratio_low": 3e-4,
        "clip_ratio_high": 4e-4,
        "use_kl_loss": False,
    },
    "rloo": {"loss_agg_mode": "seq-mean-token-sum", "use_kl_loss": False},
    "remax": {"loss_agg_mode": "seq-mean-token-sum", "use_kl_loss": False},
    "opo": {"loss_agg_mode": "seq-mean-token-sum", "use_kl_loss": False, "ppo_epochs": 1},
    "reinforce_plus_plus": {"loss_agg_mode": "token-mean", "use_kl_loss": False},
    "reinforce_plus_plus_baseline": {"loss_agg_mode": "token-mean", "kl_loss_type": "mse"},
    "cispo": {"loss_agg_mode": "token-mean", "use_kl_loss": False},
    "sapo": {"loss_agg_mode": "seq-mean-token-mean", "tau_pos": 1.0, "tau_neg": 1.05, "use_kl_loss": False},
    "gpg": {"loss_agg_mode": "token-mean", "use_kl_loss": False, "ppo_epochs": 1},
}


def some_advantages(batch: Batch, *, seed: int) -> Array:
    """One a response, as all but PPO have it; of both signs, and one of 0."""
    values = np.random.default_rng(seed).normal(size=len(batch.prompts)).astype(np.float32).astype(float)
    values[0] = 0.0
    return values[:, None] * batch.mask


def engines_loss(
    config: DictConfig, batch: Batch, advantages: Array, rows: slice = slice(None)
) -> tuple[float, Array]:
    """Loss of some rows as a part of the whole batch, and its gradient by the log-probabilities."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.utils.config import omega_conf_to_dataclass

    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    # As verl's ppo_loss sets it from the update that the rows are part of.
    actor.global_batch_info.update(
        dp_size=1,
        batch_num_tokens=int(batch.mask.sum()),
        global_batch_size=len(batch.prompts),
        loss_scale_factor=actor.loss_scale_factor,
    )
    width = int(np.flatnonzero(batch.mask[rows].any(axis=0)).max()) + 1
    old, new, weights, mask = (
        torch.tensor(value[rows, :width], dtype=torch.float32)
        for value in (batch.old, batch.new, advantages, batch.mask)
    )
    new.requires_grad_()
    loss, _ = get_policy_loss_fn(actor.policy_loss.loss_mode)(
        old_log_prob=old,
        log_prob=new,
        advantages=weights,
        response_mask=mask.bool(),
        loss_agg_mode=actor.loss_agg_mode,
        config=actor,
        rollout_is_weights=None,
    )
    loss.backward()
    gradient = np.zeros_like(batch.new[rows])
    gradient[:, :width] = new.grad.double().numpy()
    return float(loss.detach()), gradient


def papers_loss(recipe: str, config: DictConfig, batch: Batch, advantages: Array) -> tuple[float, Array]:
    actor = config.actor_rollout_ref.actor
    mode = PAPERS_SETTINGS[recipe]["loss_agg_mode"]
    weights = paper.weights_of(batch.mask, mode, config.data.max_response_length)
    loss = LOSSES[recipe](batch, advantages, dict(actor))
    return float((loss.value * weights).sum()), loss.slope * weights


def assert_agree(recipe: str, batch: Batch, seed: int) -> None:
    config, advantages = configure(recipe), some_advantages(batch, seed=seed)

    loss, gradient = engines_loss(config, batch, advantages)

    expected, slope = papers_loss(recipe, config, batch, advantages)
    np.testing.assert_allclose(loss, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient, slope, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("platform", "preset"), [("cuda", "gpu-80gb"), ("cpu", "cpu-tiny")])
@pytest.mark.parametrize("recipe", RL_RECIPES)
def test_the_recipe_has_the_papers_settings(recipe: str, platform: str, preset: str) -> None:
    actor = configure(recipe, platform=platform, preset=preset).actor_rollout_ref.actor

    assert {name: actor[name] for name in PAPERS_SETTINGS[recipe]} == PAPERS_SETTINGS[recipe]


@pytest.mark.parametrize("recipe", RL_RECIPES)
def test_loss_and_gradient_follow_the_paper(recipe: str) -> None:
    assert_agree(recipe, make_batch(19, prompts=4, group=4, width=9, has_gaps=True), seed=1)


@pytest.mark.parametrize("recipe", RL_RECIPES)
@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), prompts=st.integers(1, 4), width=st.integers(1, 8))
def test_loss_and_gradient_follow_the_paper_whatever_the_responses(
    recipe: str, seed: int, prompts: int, width: int
) -> None:
    assert_agree(recipe, make_batch(seed, prompts=prompts, group=3, width=width), seed=seed)


@pytest.mark.parametrize("recipe", RL_RECIPES)
def test_the_loss_does_not_depend_on_how_an_update_is_cut_into_passes(recipe: str) -> None:
    """A pass is as wide as its longest response: what a token counts must not follow from that."""
    config, batch = configure(recipe), make_batch(23, prompts=4, group=2, width=12)
    advantages = some_advantages(batch, seed=2)

    whole, gradient = engines_loss(config, batch, advantages)
    passes = [
        engines_loss(config, batch, advantages, rows) for rows in (slice(0, 2), slice(2, 5), slice(5, 8))
    ]

    assert sum(loss for loss, _ in passes) == pytest.approx(whole, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(np.concatenate([part for _, part in passes]), gradient, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("recipe", ["rloo", "remax", "opo"])
def test_the_first_update_is_reinforce(recipe: str) -> None:
    """Where the policy is still the one that sampled, clipping changes nothing: −A ∇log π, summed."""
    batch = make_batch(29, prompts=4, group=3, width=6)
    batch.new[:] = batch.old
    advantages = some_advantages(batch, seed=3)

    _, gradient = engines_loss(configure(recipe), batch, advantages)

    np.testing.assert_allclose(gradient, -advantages / len(batch.prompts), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("recipe", ["grpo", "gspo", "sapo", "gpg"])
def test_the_references_slopes_are_those_of_their_values(recipe: str) -> None:
    """By finite differences; CISPO is left out, as its slope is not its value's."""
    config, batch = configure(recipe), make_batch(31, prompts=2, group=2, width=4)
    advantages, step = some_advantages(batch, seed=4), 1e-6
    _, slope = papers_loss(recipe, config, batch, advantages)

    for place in zip(*np.nonzero(batch.mask), strict=True):
        batch.new[place] += step
        above, _ = papers_loss(recipe, config, batch, advantages)
        batch.new[place] -= 2 * step
        below, _ = papers_loss(recipe, config, batch, advantages)
        batch.new[place] += step
        assert (above - below) / (2 * step) == pytest.approx(slope[place], rel=1e-4, abs=1e-6)


#: Recipe, parameters, and the estimator of the divergence that its paper has; all coefficients are large
#: enough to be seen beside the policy's part.
PENALISED = [
    pytest.param("grpo", {"use_kl_loss": True, "kl_coefficient": 0.2}, "low_var_kl", id="grpo, k3"),
    pytest.param(
        "reinforce_plus_plus_baseline",
        {"use_kl_loss": True, "kl_coefficient": 0.2},
        "mse",
        id="reinforce_plus_plus_baseline, k2",
    ),
    pytest.param("ppo", {"entropy_coefficient": 0.1}, None, id="ppo, entropy"),
    pytest.param("sapo", {"entropy_coefficient": -0.1}, None, id="sapo, entropy held down"),
    pytest.param(
        "dr_grpo",
        {"use_kl_loss": True, "kl_coefficient": 0.3, "kl_estimator": "kl", "entropy_coefficient": 0.1},
        "kl",
        id="dr_grpo, k1 and entropy",
    ),
    pytest.param(
        "grpo",
        {"use_kl_loss": True, "kl_coefficient": 0.2, "entropy_coefficient": 0.1},
        "low_var_kl",
        id="grpo, k3 and entropy",
    ),
]


@pytest.mark.parametrize(("recipe", "params", "estimator"), PENALISED)
def test_the_whole_loss_adds_the_divergence_and_takes_off_the_entropy(
    recipe: str, params: dict[str, Any], estimator: str | None
) -> None:
    config = configure(recipe, params=params)
    batch = make_batch(43, prompts=4, group=4, width=9, has_gaps=True)
    advantages = some_advantages(batch, seed=5)
    entropies = np.random.default_rng(6).exponential(size=batch.mask.shape).astype(np.float32).astype(float)

    loss, by_log_prob, by_entropy = engines_whole_loss(config, batch, advantages, entropies)

    policy, slope = papers_loss(recipe, config, batch, advantages)
    weights = paper.weights_of(
        batch.mask, PAPERS_SETTINGS[recipe]["loss_agg_mode"], config.data.max_response_length
    )
    bonus = params.get("entropy_coefficient", 0.0)
    expected = policy - bonus * (entropies * weights).sum()
    if estimator is not None:
        expected += params["kl_coefficient"] * (paper.divergence(batch, estimator) * weights).sum()
        slope = slope + params["kl_coefficient"] * paper.slope_of_divergence(batch, estimator) * weights
    assert loss == pytest.approx(expected, rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(by_log_prob, slope, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(by_entropy, -bonus * weights, rtol=1e-4, atol=1e-7)


def engines_whole_loss(
    config: DictConfig, batch: Batch, advantages: Array, entropies: Array
) -> tuple[float, Array, Array]:
    """What verl's trainer descends, and its gradients by the log-probabilities and the entropies."""
    from verl.utils import tensordict_utils as tu
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.utils.losses import ppo_loss

    lengths = [int(np.flatnonzero(row).max()) + 1 for row in batch.mask]
    prompts = [torch.zeros(2, dtype=torch.long) for _ in lengths]

    def nest(rows: list[torch.Tensor]) -> torch.Tensor:
        return torch.nested.as_nested_tensor(rows, layout=torch.jagged)

    def ragged(values: Array) -> torch.Tensor:
        rows = zip(torch.tensor(values, dtype=torch.float32), lengths, strict=True)
        return nest([row[:length] for row, length in rows])

    def from_model(values: torch.Tensor) -> torch.Tensor:
        """A value for each token of prompt and response: what is said of a token stands at the one before."""
        rows = [F.pad(row[:length], (1, 1)) for row, length in zip(values, lengths, strict=True)]
        offsets = torch.tensor([0, *np.cumsum([len(row) for row in rows])])
        return torch.nested.nested_tensor_from_jagged(torch.cat(rows), offsets=offsets)

    new, entropy = (
        torch.tensor(each, dtype=torch.float32, requires_grad=True) for each in (batch.new, entropies)
    )
    data = tu.get_tensordict(
        {
            "prompts": nest(prompts),
            "responses": nest([torch.zeros(length, dtype=torch.long) for length in lengths]),
            "response_mask": ragged(batch.mask),
            "old_log_probs": ragged(batch.old),
            "ref_log_prob": ragged(batch.reference),
            "advantages": ragged(advantages),
        },
        {"dp_size": 1, "batch_num_tokens": int(batch.mask.sum()), "global_batch_size": len(batch.prompts)},
    )
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)

    loss, _ = ppo_loss(actor, {"log_probs": from_model(new), "entropy": from_model(entropy)}, data)

    loss.backward()
    return float(loss.detach()), new.grad.double().numpy(), _gradient_of(entropy)


def _gradient_of(values: torch.Tensor) -> Array:
    """Zero where nothing asks for it."""
    return (torch.zeros_like(values) if values.grad is None else values.grad).double().numpy()


@pytest.mark.parametrize("estimator", ["low_var_kl", "kl", "abs", "mse"])
def test_the_divergence_in_the_loss_is_estimated_as_named(estimator: str) -> None:
    from verl.trainer.ppo.core_algos import agg_loss, kl_penalty

    config = configure("grpo", params={"use_kl_loss": True, "kl_estimator": estimator})
    actor, batch = config.actor_rollout_ref.actor, make_batch(37, prompts=3, group=2, width=5)
    new, reference, mask = (
        torch.tensor(value, dtype=torch.float32) for value in (batch.new, batch.reference, batch.mask)
    )

    loss = agg_loss(kl_penalty(new, reference, actor.kl_loss_type), mask, actor.loss_agg_mode)

    weights = paper.weights_of(batch.mask, "seq-mean-token-mean", 1)
    assert float(loss) == pytest.approx((paper.divergence(batch, estimator) * weights).sum(), rel=1e-4)


def test_the_critics_loss_is_clipped_around_its_old_values() -> None:
    from verl.trainer.ppo.core_algos import compute_value_loss

    critic = configure("ppo", params={"value_clip": 0.3}).critic
    batch = make_batch(41, prompts=3, group=2, width=5)
    returns = np.random.default_rng(0).normal(size=batch.mask.shape)
    new, old, targets, mask = (
        torch.tensor(value, dtype=torch.float32)
        for value in (batch.new_values, batch.values, returns, batch.mask)
    )

    loss, _ = compute_value_loss(new, targets, old, mask, critic.cliprange_value, critic.loss_agg_mode)

    weights = paper.weights_of(batch.mask, "token-mean", 1)
    expected = (paper.clipped_value_loss(batch, returns, 0.3) * weights).sum()
    assert float(loss) == pytest.approx(expected, rel=1e-4)
