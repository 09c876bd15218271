"""The table of alarms: what is watched, from which threshold, why, and how many steps must agree.

Keys are the engines' own: verl's RL trainer logs ``actor/``, ``critic/``, ``training/`` and
``response_length/``, its SFT trainer ``train/`` and ``val/``, TRL bare names. A run stands
still outside this table (``stall.py``): no metric tells of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from trellis_recipes.headline_metrics import is_validation_score

from trellis_api.jobs.alarms import judgements
from trellis_api.jobs.alarms.judgements import Judge
from trellis_api.jobs.alarms.schemas import Severity

_HIGHEST, _LOWEST = "critic/score/max", "critic/score/min"
_CORRELATION = "training/rollout_actor_probs_pearson_corr"
_DIFFERENCES = "training/rollout_probs_diff_mean"
_SCORE, _LENGTH = "critic/score/mean", "response_length/mean"
_LENGTH_CORRELATION = "training/length_score_correlation"
_BASELINE = "probe/rollouts/mean"


@dataclass(frozen=True)
class Rule:
    """One alarm, as far as metrics tell."""

    code: str
    severity: Severity
    #: One sentence for the documentation: what is measured, the threshold, and where it comes from.
    basis: str
    #: What it is about, by the names under which the engines log it. Runs of the engines are held against
    #: them (``tests/proof``): a name that an engine no longer logs would silence the alarm without a word.
    keys: tuple[str, ...]
    judge: Judge
    #: Steps in a row that must be wrong to raise it, or in order to clear it.
    raise_after: int
    clear_after: int
    #: Whether values are kept to compare later ones with.
    has_history: bool = False
    #: The one name under which the keys are judged together; None where each is judged by itself.
    track: str | None = None
    #: Whether it is about a key of another name too: of one that depends on the data, or that our own hooks
    #: report of some mixtures of rewards only.
    also: Callable[[str], bool] | None = None

    def follow(self, key: str) -> str | None:
        """Return the name under which the rule tracks a key; None if the rule is not about that key."""
        is_followed = key in self.keys or (self.also is not None and self.also(key))
        return (self.track or key) if is_followed else None


def _is_loss_or_norm(key: str) -> bool:
    last = key.rpartition("/")[2]
    return last in {"loss", "grad_norm"} or last.endswith("_loss")


def _is_one_of(*names: str) -> Callable[[str], bool]:
    return lambda key: key in names


RULES: tuple[Rule, ...] = (
    Rule(
        code="loss_not_finite",
        severity="critical",
        basis="Any loss or gradient norm is NaN or infinite; raised immediately, because one such AdamW "
        "update makes the moments and weights non-finite too.",
        keys=(
            "actor/pg_loss",
            "actor/kl_loss",
            "actor/grad_norm",
            "critic/vf_loss",
            "critic/grad_norm",
            "train/loss",
            "train/grad_norm",
            "val/loss",
            "loss",
            "grad_norm",
            "eval_loss",
        ),
        also=_is_loss_or_norm,
        judge=judgements.judge_finite,
        raise_after=1,
        clear_after=3,
    ),
    Rule(
        code="loss_exploding",
        severity="critical",
        basis="The training loss is above twice its first values plus 0.5 for 3 steps: the model is "
        "worse than before training. Spikes that recover within a step or two are common and harmless "
        "(PaLM, arXiv:2204.02311, section 5.1).",
        keys=("train/loss", "loss"),
        judge=judgements.judge_against_start(factor=2.0, margin=0.5),
        raise_after=3,
        clear_after=3,
        has_history=True,
    ),
    Rule(
        code="grad_norm_exploding",
        severity="warning",
        basis="The gradient norm before clipping is above 1 and 10 times its recent median for 3 steps. "
        "Single spikes are clipped (grad_clip) and not counted.",
        keys=("actor/grad_norm", "critic/grad_norm", "train/grad_norm", "grad_norm"),
        # One that is not finite is said by loss_not_finite, at once.
        judge=judgements.judge_growth(level=1.0, factor=10.0, release=0.5, is_finiteness_judged=False),
        raise_after=3,
        clear_after=3,
        has_history=True,
    ),
    Rule(
        code="kl_exploding",
        severity="critical",
        basis="The KL divergence of one update is above 0.5 nats per token and 5 times its recent median "
        "(PPO implementations stop an update at 0.015 to 0.05), above 5, or NaN or infinite; for 2 "
        "steps.",
        keys=("actor/ppo_kl",),
        judge=judgements.judge_growth(level=0.5, factor=5.0, ceiling=5.0, release=0.5),
        raise_after=2,
        clear_after=3,
        has_history=True,
    ),
    Rule(
        code="kl_exploding",
        severity="critical",
        basis="The KL divergence to the reference is above 1 nat per token and 5 times its recent median, "
        "above 10 (useful runs end well below 1: arXiv:2210.10760), or NaN or infinite; for 2 steps.",
        keys=("actor/kl_loss", "actor/reward_kl_penalty"),
        judge=judgements.judge_growth(level=1.0, factor=5.0, ceiling=10.0, release=0.5),
        raise_after=2,
        clear_after=3,
        has_history=True,
    ),
    Rule(
        code="kl_exploding",
        severity="critical",
        basis="KTO's KL estimate of whole completions is above 100 nats and 5 times its recent median, "
        "or NaN or infinite, for 2 steps: at the usual beta of 0.1 its sigmoid is then saturated "
        "(arXiv:2402.01306).",
        keys=("kl",),
        judge=judgements.judge_growth(level=100.0, factor=5.0, release=0.5),
        raise_after=2,
        clear_after=3,
        has_history=True,
    ),
    Rule(
        code="entropy_collapse",
        severity="warning",
        basis="The policy's entropy is below a tenth of its initial value (the first value, or the median of "
        "the first 8 if that is higher) and below 0.05 nats per token for 5 steps: the remaining gain "
        "shrinks with it (arXiv:2505.22617; DAPO, arXiv:2503.14476).",
        keys=("actor/entropy",),
        judge=judgements.judge_collapse(share=0.1, level=0.05, release=2.0),
        raise_after=5,
        clear_after=5,
        has_history=True,
    ),
    Rule(
        code="rewards_all_zero",
        severity="critical",
        basis="The maximum and minimum score of the batch are 0 for 5 steps. One such batch can happen by "
        "chance on hard data; five in a row do not.",
        keys=(_HIGHEST, _LOWEST),
        track=_HIGHEST,
        judge=judgements.judge_all_zero(highest=_HIGHEST, lowest=_LOWEST),
        raise_after=5,
        clear_after=1,
    ),
    Rule(
        code="rewards_all_equal",
        severity="warning",
        basis="The maximum and minimum score of the batch are equal, but not 0, for 5 steps.",
        keys=(_HIGHEST, _LOWEST),
        track=_HIGHEST,
        judge=judgements.judge_all_equal(highest=_HIGHEST, lowest=_LOWEST),
        raise_after=5,
        clear_after=1,
    ),
    Rule(
        code="rewards_all_equal",
        severity="warning",
        basis="In 99 % of the groups all rewards are equal for 5 steps, so group-relative advantages "
        "are zero (DAPO, arXiv:2503.14476, section 3.2).",
        keys=("training/uniform_group_fraction",),
        judge=judgements.judge_uniform_groups(bound=0.99, highest=_HIGHEST),
        raise_after=5,
        clear_after=1,
    ),
    Rule(
        code="sessions_failing",
        severity="warning",
        basis="A fifth of an agent's sessions fail in 2 consecutive steps. Each counts as reward 0 in the "
        "averages and is not trained on; above one half, the run fails.",
        keys=("agent/workflow_error/mean",),
        judge=judgements.judge_above(bound=0.2, release=0.1),
        raise_after=2,
        clear_after=3,
    ),
    Rule(
        code="rollout_mismatch",
        severity="critical",
        basis="The mean importance weight between trainer and rollout engine is outside 0.5 to 2, or NaN or "
        "infinite, for 2 steps. Its expected value is 1 when both compute the same policy.",
        keys=("training/rollout_importance_weight_mean", "rollout_corr/rollout_is_mean"),
        judge=judgements.judge_outside(low=0.5, high=2.0),
        raise_after=2,
        clear_after=3,
    ),
    Rule(
        code="rollout_mismatch",
        severity="critical",
        basis="Trainer and rollout probabilities correlate below 0.9 and differ by more than 0.02 on "
        "average, for 3 steps (0.9 is where MiniMax-M1 stopped learning: arXiv:2506.13585, 3.2).",
        keys=(_CORRELATION, _DIFFERENCES),
        track=_CORRELATION,
        judge=judgements.judge_correlation(bound=0.9, differences=_DIFFERENCES, least_difference=0.02),
        raise_after=3,
        clear_after=3,
    ),
    Rule(
        code="responses_truncated",
        severity="warning",
        basis="90 % of the responses reach the maximum length for 5 steps.",
        keys=("response_length/clip_ratio",),
        judge=judgements.judge_above(bound=0.9, release=0.7),
        raise_after=5,
        clear_after=3,
    ),
    Rule(
        code="validation_worse",
        severity="warning",
        basis="The validation loss is 5 % above its lowest value in 3 consecutive validations (Prechelt's "
        "criterion GL5 for early stopping, Early Stopping - But When?, 1998).",
        keys=("val/loss", "eval_loss"),
        judge=judgements.judge_worse_than_best(factor=1.05),
        raise_after=3,
        clear_after=1,
        has_history=True,
    ),
    Rule(
        code="reward_follows_length",
        severity="warning",
        basis="Responses are 1.25 times as long as in the run's first steps, and length and score within a "
        "group correlate by 0.5 or more, for 5 steps. Length is the best-known proxy that policies "
        "exploit (arXiv:2310.03716).",
        keys=(_LENGTH,),
        also=_is_one_of(_LENGTH_CORRELATION),
        track=_LENGTH,
        judge=judgements.judge_growth_paid(correlation=_LENGTH_CORRELATION, least=0.5, factor=1.25),
        raise_after=5,
        clear_after=5,
        has_history=True,
    ),
    Rule(
        code="reward_parts_diverging",
        severity="warning",
        basis="The score is above its initial values and what decides correctness (the first reward, its "
        "part for the answer, the accuracy of a single one, or what an agent reports) is below its own, "
        "each by a fifth or 0.05, for 5 steps: the rest of the reward makes up for the loss.",
        keys=(_SCORE,),
        also=_is_one_of("training/answer_reward_mean"),
        judge=judgements.judge_diverging(rising=_SCORE, share=0.2, least=0.05),
        raise_after=5,
        clear_after=5,
        has_history=True,
    ),
    Rule(
        code="responses_repeat",
        severity="warning",
        basis="The share of repeated token 4-grams in a response is above 1.5 times its initial values plus "
        "0.2, for 3 steps.",
        keys=("training/repeated_ngram_fraction",),
        judge=judgements.judge_against_start(factor=1.5, margin=0.2),
        raise_after=3,
        clear_after=3,
        has_history=True,
    ),
    Rule(
        code="reward_without_progress",
        severity="warning",
        basis="The training score has gained 0.1 or more since the start, while the validation score gained "
        "less than a fifth of that and is below it, in 3 consecutive validations (the gap between "
        "proxy and gold reward of arXiv:2210.10760).",
        keys=(_SCORE,),
        also=is_validation_score,
        judge=judgements.judge_without_progress(trained=_SCORE, least=0.1, share=0.2),
        raise_after=3,
        clear_after=1,
        has_history=True,
    ),
    Rule(
        code="format_only",
        severity="warning",
        basis="80 % of the responses get a reward although what decides correctness is 0, for 8 "
        "steps: the format is learned within a few steps; correct answers should follow.",
        keys=(),
        also=_is_one_of("training/format_only_fraction"),
        judge=judgements.judge_above(bound=0.8, release=0.6),
        raise_after=8,
        clear_after=3,
    ),
    Rule(
        code="probe_earns",
        severity="warning",
        basis="An empty response, the format alone, or the response to another prompt scores 80 % of the "
        "policy's best responses, if that is 0.05 or more; probes are scored every 10 steps, twice "
        "in a row. Rewards that aren't computed again count at their lowest value.",
        keys=(),
        also=_is_one_of("probe/empty/mean", "probe/format_only/mean", "probe/wrong/mean", _BASELINE),
        judge=judgements.judge_probe(baseline=_BASELINE, share=0.8, least=0.05),
        raise_after=2,
        clear_after=2,
    ),
    Rule(
        code="probe_earns",
        severity="warning",
        basis="The policy's best responses repeated three times score 10 % more than once, twice in a row.",
        keys=(),
        also=_is_one_of("probe/repeated/mean", _BASELINE),
        judge=judgements.judge_probe(baseline=_BASELINE, share=1.1, least=0.05),
        raise_after=2,
        clear_after=2,
    ),
)
SEVERITIES: dict[str, Severity] = {rule.code: rule.severity for rule in RULES} | {
    "stalled": "critical",
    "not_placed": "critical",
    "other_platform": "critical",
}


@lru_cache(maxsize=4096)
def find_rules(key: str) -> tuple[tuple[int, str], ...]:
    """Return the rules that track a key: position in the table, and the name that they track it under."""
    found = ((position, rule.follow(key)) for position, rule in enumerate(RULES))
    return tuple((position, track) for position, track in found if track is not None)
