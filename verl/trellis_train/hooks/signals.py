"""Metrics of a step that tell of trouble before the reward does, and that verl does not log."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from trellis_train.rollout.sample_ids import SampleKey, real_keys

if TYPE_CHECKING:
    from torch import Tensor

#: Mean over all sampled tokens of trainer's probability over sampler's, before the update: 1 where they
#: agree. Where verl takes the sampler's probabilities for the trainer's (bypass mode), the updates tell it.
IMPORTANCE_WEIGHT_MEAN = "training/rollout_importance_weight_mean"
#: Share of the prompts whose responses all scored alike, from which a group baseline learns nothing.
UNIFORM_GROUP_FRACTION = "training/uniform_group_fraction"
SCORES, LOG_PROBS = "rm_scores", ("old_log_probs", "rollout_log_probs")


def collect_signals(batch: Any, *, has_trainer_log_probs: bool) -> dict[str, float]:
    """The signals of ``batch`` (verl's ``KVBatchMeta``), read before it is cleared."""
    import transfer_queue as tq

    keys = real_keys(batch)
    if not keys:
        return {}
    fields = [SCORES, *LOG_PROBS, "response_mask"] if has_trainer_log_probs else [SCORES]
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=fields)
    signals: dict[str, float] = {}
    if has_trainer_log_probs and set(LOG_PROBS) <= set(data.keys()):
        columns = (data[name].unbind() for name in (*LOG_PROBS, "response_mask"))
        weight = mean_importance_weight(*columns)
        if weight is not None:
            signals[IMPORTANCE_WEIGHT_MEAN] = weight
    share = share_uniform_groups(
        (SampleKey.parse(key).uid for key in keys), [float(row.sum()) for row in data[SCORES].unbind()]
    )
    if share is not None:
        signals[UNIFORM_GROUP_FRACTION] = share
    return signals


def mean_importance_weight(
    trainer_log_probs: Sequence["Tensor"], sampler_log_probs: Sequence["Tensor"], masks: Sequence["Tensor"]
) -> float | None:
    """Mean of exp(trainer - sampler) over the tokens that count; one tensor a response.

    None where no token counts.
    """
    import torch

    mask = torch.cat(tuple(masks)).bool()
    if not bool(mask.any()):
        return None
    difference = torch.cat(tuple(trainer_log_probs)).double() - torch.cat(tuple(sampler_log_probs)).double()
    return float(difference[mask].exp().mean())


def share_uniform_groups(groups: Iterable[str], scores: Iterable[float]) -> float | None:
    """Share of the groups of two and more whose scores are all equal; None where there is no such group."""
    found: dict[str, list[float]] = {}
    for group, score in zip(groups, scores, strict=True):
        found.setdefault(group, []).append(score)
    compared = [each for each in found.values() if len(each) > 1]
    if not compared:
        return None
    return sum(len(set(each)) == 1 for each in compared) / len(compared)
