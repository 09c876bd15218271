"""The mean of each update's ratio of probabilities, as a metric of verl's policy losses.

Where the old probabilities are the rollout engine's, that is the trainer's probability over theirs. Nothing
else measures it then: verl compares the two only after a forward pass of the trainer's own.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from trellis_train.compat.change import change
from trellis_train.compat.isolation import GROUP

_TESTS = "tests/train/compat/test_ratios.py"
#: Mean over the sampled tokens of the policy's probability over the old one: in expectation 1 for every
#: policy, as the tokens are samples of the old one.
RATIO_MEAN = "actor/ratio_mean"
#: As verl bounds the logarithm of the ratio in its losses.
MOST_LOG_RATIO = 20.0


@change(
    target="verl.workers.utils.losses.get_policy_loss_fn",
    group=GROUP,
    kind="fix",
    does="Has every policy loss tell the mean ratio of the policy's probability over the old one.",
    without="`training/rollout_importance_weight_mean` is missing where a pass is saved.",
    note="register_policy_loss is no door to losses that verl has registered itself.",
    tests=(
        f"{_TESTS}::test_every_loss_tells_how_far_the_old_probabilities_are_off",
        f"{_TESTS}::test_the_loss_and_its_metrics_stay_verls",
    ),
)
def choosing_measured(choose: Callable[[str], Callable[..., Any]]) -> Callable[..., Any]:
    """Wrap verl's choice of a loss so that its losses are measured."""

    @wraps(choose)
    def choose_measured(name: str) -> Callable[..., Any]:
        return measured(choose(name))

    return choose_measured


def measured(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap one of verl's policy losses to report :data:`RATIO_MEAN` among its metrics."""

    @wraps(loss)
    def loss_and_ratio(*, old_log_prob: Any, log_prob: Any, response_mask: Any, **more: Any) -> Any:
        value, metrics = loss(
            old_log_prob=old_log_prob, log_prob=log_prob, response_mask=response_mask, **more
        )
        ratio = mean_ratio(log_prob.detach(), old_log_prob, response_mask)
        return value, metrics if ratio is None else {**metrics, RATIO_MEAN: ratio}

    return loss_and_ratio


def mean_ratio(log_probs: Any, old_log_probs: Any, mask: Any) -> float | None:
    """Compute the mean of exp(new - old) over ``mask``, all (responses, tokens); None if it is empty."""
    is_token = mask.bool()
    if not bool(is_token.any()):
        return None
    difference = (log_probs - old_log_probs)[is_token].double()
    return float(difference.clamp(-MOST_LOG_RATIO, MOST_LOG_RATIO).exp().mean())
