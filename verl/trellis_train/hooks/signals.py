"""Metrics of a step that tell of trouble before the reward does, and that verl does not log."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trellis_train.hooks.token_traces import Extreme, find_extreme
from trellis_train.rollout.sample_ids import real_keys

if TYPE_CHECKING:
    from torch import Tensor

#: Mean over all sampled tokens of trainer's probability over the rollout engine's, before the update: 1 where
#: they agree. Where verl takes the rollout engine's probabilities for the trainer's (bypass mode), the
#: updates tell it.
IMPORTANCE_WEIGHT_MEAN = "training/rollout_importance_weight_mean"
LOG_PROBS = ("old_log_probs", "rollout_log_probs")


class Signals(NamedTuple):
    """Metrics of a step, and the response behind the largest of them."""

    metrics: dict[str, float]
    #: None where the trainer has no log-probabilities of its own.
    extreme: Extreme | None = None


def collect_signals(batch: Any, *, has_trainer_log_probs: bool) -> Signals:
    """Compute the signals of ``batch`` (verl's ``KVBatchMeta``) before it is cleared."""
    import transfer_queue as tq

    keys = real_keys(batch)
    if not keys or not has_trainer_log_probs:
        return Signals({})
    fields = [*LOG_PROBS, "response_mask"]
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=fields)
    if not set(LOG_PROBS) <= set(data.keys()):
        return Signals({})
    columns = [data[name].unbind() for name in fields]
    weight = mean_importance_weight(*columns)
    found = {} if weight is None else {IMPORTANCE_WEIGHT_MEAN: weight}
    return Signals(found, find_extreme(keys, *columns))


def mean_importance_weight(
    trainer_log_probs: Sequence["Tensor"], sampler_log_probs: Sequence["Tensor"], masks: Sequence["Tensor"]
) -> float | None:
    """Average exp(trainer - sampler) over the tokens that count; one tensor per response.

    None where no token counts.
    """
    import torch

    mask = torch.cat(tuple(masks)).bool()
    if not bool(mask.any()):
        return None
    difference = torch.cat(tuple(trainer_log_probs)).double() - torch.cat(tuple(sampler_log_probs)).double()
    return float(difference[mask].exp().mean())
