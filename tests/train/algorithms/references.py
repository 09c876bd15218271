"""The papers' formulas in numpy, written from the papers and not from the engine.

Arrays are responses × tokens; ``mask`` is 1 where the policy wrote the token. Nothing here
knows verl: what it computes is compared with what verl computes for a recipe.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
EPSILON = 1e-6


@dataclass(frozen=True)
class Batch:
    """Responses to several prompts, in no particular order."""

    prompts: list[str]
    mask: Array
    #: The reward of a response stands on its last token.
    rewards: Array
    old: Array
    new: Array
    reference: Array
    values: Array
    new_values: Array
    #: Score of the greedy response by prompt.
    greedy: dict[str, float]

    @property
    def scores(self) -> Array:
        return self.rewards.sum(axis=1)

    @property
    def lengths(self) -> Array:
        return self.mask.sum(axis=1)

    def rows_of(self, prompt: str) -> list[int]:
        return [row for row, name in enumerate(self.prompts) if name == prompt]


def make_batch(seed: int, *, prompts: int, group: int, width: int, has_gaps: bool = False) -> Batch:
    """Responses of unequal lengths; with gaps, tokens in their middle come from a tool."""
    random = np.random.default_rng(seed)
    names = [f"p{number}" for number in range(prompts) for _ in range(group)]
    random.shuffle(names)
    count = len(names)
    lengths = random.integers(1, width + 1, size=count)
    mask = (np.arange(width) < lengths[:, None]).astype(float)
    if has_gaps:
        gaps = random.random((count, width)) < 0.3
        gaps[np.arange(count), lengths - 1] = False  # the last token earns the reward
        mask = mask * ~gaps
    rewards = np.zeros((count, width))
    rewards[np.arange(count), lengths - 1] = random.choice([0.0, 0.25, 1.0], size=count)

    def log_probs() -> Array:
        return -random.exponential(1.0, size=(count, width))

    old = log_probs()
    return _as_single_precision(
        Batch(
            prompts=names,
            mask=mask,
            rewards=rewards,
            old=old,
            # Mostly near the policy that sampled, with some tokens far off on either side.
            new=old + random.normal(0, 0.3, size=old.shape) * random.choice([0.1, 1, 5], size=old.shape),
            reference=old + random.normal(0, 0.3, size=old.shape),
            values=random.normal(0.4, 0.3, size=old.shape),
            new_values=random.normal(0.4, 0.6, size=old.shape),
            greedy={name: float(random.choice([0.0, 1.0])) for name in set(names)},
        )
    )


def _as_single_precision(batch: Batch) -> Batch:
    """Values that both sides can represent."""
    fields = {
        name: value.astype(np.float32).astype(np.float64) if isinstance(value, np.ndarray) else value
        for name, value in vars(batch).items()
    }
    return Batch(**fields)


# -- rewards -----------------------------------------------------------------------------


def penalise_divergence(batch: Batch, coefficient: float) -> Array:
    """Token rewards less β (log π_old − log π_ref), the k1 estimate of the divergence."""
    return batch.rewards - coefficient * (batch.old - batch.reference) * batch.mask


def overlong_penalty(length: int, *, longest: int, buffer: int, factor: float) -> float:
    """DAPO, equation 13, times a factor."""
    if length <= longest - buffer:
        return 0.0
    return factor * ((longest - buffer) - length) / buffer


# -- advantages --------------------------------------------------------------------------


def whiten(values: Array, mask: Array) -> Array:
    """To mean 0 and variance 1 (unbiased) over the tokens in the mask."""
    chosen = values[mask > 0]
    return (values - chosen.mean()) / np.sqrt(chosen.var(ddof=1) + 1e-8)


def spread(per_response: Array, batch: Batch) -> Array:
    return per_response[:, None] * batch.mask


def group_relative(batch: Batch, rewards: Array, *, by_deviation: bool) -> Array:
    """GRPO: reward less the group's mean, over the group's deviation; Dr. GRPO leaves the deviation out."""
    scores, result = rewards.sum(axis=1), np.zeros(len(batch.prompts))
    for prompt in set(batch.prompts):
        rows = batch.rows_of(prompt)
        group = scores[rows]
        result[rows] = group - group.mean()
        if by_deviation:
            result[rows] /= group.std(ddof=1) + EPSILON
    return spread(result, batch)


def leave_one_out(batch: Batch, rewards: Array) -> Array:
    """RLOO: reward less the mean of the *other* responses' rewards."""
    scores, result = rewards.sum(axis=1), np.zeros(len(batch.prompts))
    for prompt in set(batch.prompts):
        rows = batch.rows_of(prompt)
        for row in rows:
            others = [other for other in rows if other != row]
            result[row] = scores[row] - np.mean(scores[others])
    return spread(result, batch)


def optimal_baseline(batch: Batch, rewards: Array) -> Array:
    """OPO: reward less the group's mean reward weighted by length."""
    scores, result = rewards.sum(axis=1), np.zeros(len(batch.prompts))
    for prompt in set(batch.prompts):
        rows = batch.rows_of(prompt)
        result[rows] = scores[rows] - np.average(scores[rows], weights=batch.lengths[rows])
    return spread(result, batch)


def reward_to_go(batch: Batch, rewards: Array, gamma: float) -> Array:
    """Discounted sum of the rewards from each token on; tokens that the policy did not write are skipped."""
    result = np.zeros_like(rewards)
    for row in range(len(batch.prompts)):
        written = np.flatnonzero(batch.mask[row])
        for place, token in enumerate(written):
            later = written[place:]
            result[row, token] = np.sum(rewards[row, later] * gamma ** np.arange(len(later)))
    return result


def greedy_baseline(batch: Batch, rewards: Array) -> Array:
    """ReMax: reward to go less the greedy response's reward."""
    baseline = np.array([batch.greedy[prompt] for prompt in batch.prompts])
    return (reward_to_go(batch, rewards, 1.0) - baseline[:, None]) * batch.mask


def globally_normalised(batch: Batch, rewards: Array, gamma: float) -> Array:
    """REINFORCE++: reward to go, normalised over all tokens of the batch."""
    return whiten(reward_to_go(batch, rewards, gamma), batch.mask) * batch.mask


def normalised_after_group(batch: Batch, rewards: Array) -> Array:
    """REINFORCE++ with baseline: reward less the group's mean, normalised over the batch."""
    return whiten(group_relative(batch, rewards, by_deviation=False), batch.mask) * batch.mask


def accurate_group_gradient(batch: Batch, rewards: Array) -> Array:
    """GPG: reward less the group's mean, times B / (B − M), M responses being in groups of equal rewards."""
    scores = rewards.sum(axis=1)
    groups = [batch.rows_of(prompt) for prompt in set(batch.prompts)]
    useless = sum(len(rows) for rows in groups if np.ptp(scores[rows]) == 0)
    total = len(batch.prompts)
    scale = total / (total - useless) if useless < total else 1.0
    return scale * group_relative(batch, rewards, by_deviation=False)


def generalised(batch: Batch, rewards: Array, gamma: float, lam: float) -> tuple[Array, Array]:
    """GAE(γ, λ), equation 16 of its paper, whitened as PPO is run; and the returns that the critic learns."""
    advantages = np.zeros_like(rewards)
    for row in range(len(batch.prompts)):
        written = np.flatnonzero(batch.mask[row])
        values = np.append(batch.values[row, written], 0.0)
        deltas = rewards[row, written] + gamma * values[1:] - values[:-1]
        for place, token in enumerate(written):
            later = deltas[place:]
            advantages[row, token] = np.sum(later * (gamma * lam) ** np.arange(len(later)))
    returns = (advantages + batch.values) * batch.mask
    return whiten(advantages, batch.mask) * batch.mask, returns


# -- losses ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TokenLoss:
    """Loss of each token, and its derivative by the token's log-probability."""

    value: Array
    slope: Array


Loss = Callable[[Batch, Array, dict[str, Any]], TokenLoss]


def weights_of(mask: Array, mode: str, longest: int) -> Array:
    """What each token's loss counts in the loss of the batch."""
    lengths = mask.sum(axis=1, keepdims=True)
    count = len(mask)
    return {
        "token-mean": mask / mask.sum(),
        "seq-mean-token-sum": mask / count,
        "seq-mean-token-mean": mask / np.maximum(lengths, 1) / count,
        "seq-mean-token-sum-norm": mask / longest / count,
    }[mode]


def clipped_surrogate(batch: Batch, advantages: Array, settings: dict[str, Any]) -> TokenLoss:
    """PPO, equation 7, with separate ranges (DAPO) and the bound of dual-clip PPO (1912.09729)."""
    ratio = np.exp(batch.new - batch.old)
    bound = settings["clip_ratio_c"]
    clipped = np.clip(ratio, 1 - settings["clip_ratio_low"], 1 + settings["clip_ratio_high"])
    objective = np.minimum(ratio * advantages, clipped * advantages)
    objective = np.where(advantages < 0, np.maximum(objective, bound * advantages), objective)
    moves = np.where(
        advantages > 0,
        ratio < 1 + settings["clip_ratio_high"],
        (ratio > 1 - settings["clip_ratio_low"]) & (ratio < bound),
    )
    return TokenLoss(-objective, np.where(moves, -ratio * advantages, 0.0))


def clipped_sequence(batch: Batch, advantages: Array, settings: dict[str, Any]) -> TokenLoss:
    """GSPO, equations 5 and 7: one ratio a response, the geometric mean of its tokens' ratios."""
    lengths = np.maximum(batch.lengths, 1)
    ratio = np.exp(((batch.new - batch.old) * batch.mask).sum(axis=1) / lengths)[:, None]
    low, high = 1 - settings["clip_ratio_low"], 1 + settings["clip_ratio_high"]
    objective = np.minimum(ratio * advantages, np.clip(ratio, low, high) * advantages)
    moves = np.where(advantages > 0, ratio < high, ratio > low)
    # The response's 1/|y| is in the weights of its tokens.
    return TokenLoss(-objective, np.where(moves, -ratio * advantages, 0.0))


def clipped_weight(batch: Batch, advantages: Array, settings: dict[str, Any]) -> TokenLoss:
    """CISPO, equations 4 and 5: the weight is clipped and no gradient goes through it."""
    ratio = np.exp(batch.new - batch.old)
    weight = np.clip(ratio, 1 - settings["clip_ratio_low"], 1 + settings["clip_ratio_high"])
    return TokenLoss(-weight * advantages * batch.new, -weight * advantages)


def soft_gate(batch: Batch, advantages: Array, settings: dict[str, Any]) -> TokenLoss:
    """SAPO, equations 5 to 8: σ(τ (r − 1)) 4 / τ in the place of the ratio."""
    ratio = np.exp(batch.new - batch.old)
    tau = np.where(advantages > 0, settings["tau_pos"], settings["tau_neg"])
    gate = 1 / (1 + np.exp(-tau * (ratio - 1)))
    return TokenLoss(-advantages * gate * 4 / tau, -advantages * 4 * gate * (1 - gate) * ratio)


def plain_gradient(batch: Batch, advantages: Array, settings: dict[str, Any]) -> TokenLoss:
    """GPG: −log π times the advantage."""
    del settings
    return TokenLoss(-batch.new * advantages, -advantages)


def divergence(batch: Batch, estimator: str) -> Array:
    """Estimates of KL(π ‖ π_ref) by the sampled tokens (joschu.net/blog/kl-approx.html)."""
    log_ratio = batch.reference - batch.new
    return {
        "kl": -log_ratio,
        "abs": np.abs(log_ratio),
        "mse": log_ratio**2 / 2,
        "low_var_kl": np.exp(log_ratio) - 1 - log_ratio,
    }[estimator]


def slope_of_divergence(batch: Batch, estimator: str) -> Array:
    """Derivatives of those estimates by the log-probabilities of π."""
    log_ratio = batch.reference - batch.new
    return {
        "kl": np.ones_like(log_ratio),
        "abs": -np.sign(log_ratio),
        "mse": -log_ratio,
        "low_var_kl": 1 - np.exp(log_ratio),
    }[estimator]


def clipped_value_loss(batch: Batch, returns: Array, clip: float) -> Array:
    """Half the larger of the squared errors of a value and of the value held near its old one."""
    held = np.clip(batch.new_values, batch.values - clip, batch.values + clip)
    return 0.5 * np.maximum((batch.new_values - returns) ** 2, (held - returns) ** 2)
