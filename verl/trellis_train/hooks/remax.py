"""ReMax's baseline: in every step one greedy response to each prompt, from the same weights as the others.

verl has ReMax's estimator, but its V1 trainer gives it no baselines. Here every prompt
is submitted twice: to be sampled, and to be answered greedily under a name of its own.
The greedy responses are read and removed before the batch is trained on
(https://arxiv.org/abs/2310.10505, algorithm 1).
"""

import logging
from collections.abc import Iterable
from typing import Any

from trellis_train.rollout.sample_ids import SampleKey

logger = logging.getLogger(__name__)

#: Follows a prompt's name; verl ends the name at the first underscore.
GREEDY = "-greedy"
METRIC = "critic/reward_baseline"


class GreedyBaseline:
    """Mixed in before one of verl's synchronous trainers; ``Any`` stands for the trainer's own attributes."""

    config: Any
    #: Score of the greedy response by prompt, of this step.
    _baselines: dict[str, float]

    def _submit_batch_to_rollout(self, batch: Any) -> int:
        from verl.utils.tensordict_utils import assign_non_tensor_data, assign_non_tensor_stack

        greedy = batch.clone(recurse=False)
        assign_non_tensor_stack(greedy, "uid", [f"{uid}{GREEDY}" for uid in batch["uid"]])
        # verl's agent-loop worker reads both.
        assign_non_tensor_data(greedy, "__rollout_n__", 1)
        assign_non_tensor_data(greedy, "__do_sample__", False)
        submitted: int = super()._submit_batch_to_rollout(batch)  # type: ignore[misc]
        super()._submit_batch_to_rollout(greedy)  # type: ignore[misc]
        return submitted

    def _build_replay_buffer(self) -> Any:
        buffer = super()._build_replay_buffer()  # type: ignore[misc]
        sample = buffer.sample

        def sample_without_greedy(*, partition_id: str, batch_size: int, **more: Any) -> Any:
            if partition_id != "train":
                return sample(partition_id=partition_id, batch_size=batch_size, **more)
            # Each prompt is there twice.
            batch, metrics = sample(partition_id=partition_id, batch_size=2 * batch_size, **more)
            batch, self._baselines = take_baselines(batch)
            return batch, metrics

        buffer.sample = sample_without_greedy
        return buffer

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        from verl.trainer.ppo import core_algos

        # verl's trainer collects no such column; its estimator finds it by the prompts' names.
        core_algos.ADV_ESTIMATOR_REGISTRY["remax"] = self._estimate
        scores = list(self._baselines.values())
        metrics[f"{METRIC}/mean"] = sum(scores) / len(scores)
        metrics[f"{METRIC}/max"], metrics[f"{METRIC}/min"] = max(scores), min(scores)
        return super()._compute_advantage(batch, metrics)  # type: ignore[misc]

    def _estimate(
        self, token_level_rewards: Any, response_mask: Any, index: Iterable[str], **more: Any
    ) -> tuple[Any, Any]:
        from verl.trainer.ppo.core_algos import compute_remax_outcome_advantage

        found = baselines_of(index, self._baselines, has_tokens=response_mask.any(dim=-1).tolist())
        return compute_remax_outcome_advantage(
            token_level_rewards=token_level_rewards,
            reward_baselines=token_level_rewards.new_tensor(found),
            response_mask=response_mask,
            **more,
        )


def take_baselines(batch: Any) -> tuple[Any, dict[str, float]]:
    """Drop the greedy responses of a batch (verl's ``KVBatchMeta``); also return their scores by prompt.

    A prompt whose greedy response failed has no baseline, so its samples go too; verl
    fills the batch up with padding, as it does for failed samples.
    """
    import transfer_queue as tq

    samples = [SampleKey.parse(key) for key in batch.keys]
    # Of several outputs the last one carries the score of all.
    last = {sample.uid: sample for sample in sorted(samples, key=lambda sample: sample.index)}
    greedy = {uid.removesuffix(GREEDY): sample.key for uid, sample in last.items() if uid.endswith(GREEDY)}
    kept = [sample.key for sample in samples if sample.uid in greedy]
    if not kept:
        raise RuntimeError("No prompt in this step has both a greedy and a sampled response.")
    without = {sample.uid for sample in samples if not sample.uid.endswith(GREEDY)} - greedy.keys()
    if without:
        logger.warning("skipping %d prompts: their greedy responses failed", len(without))
    partition = batch.partition_id
    data = tq.kv_batch_get(keys=list(greedy.values()), partition_id=partition, select_fields=["rm_scores"])
    scores = [float(score.sum()) for score in data["rm_scores"].unbind()]
    tq.kv_clear(keys=sorted(set(batch.keys) - set(kept)), partition_id=partition)
    return batch.select_keys(kept), dict(zip(greedy, scores, strict=True))


def baselines_of(
    prompts: Iterable[str], baselines: dict[str, float], *, has_tokens: list[bool]
) -> list[float]:
    """Return the baseline of each row; padding rows, which have no tokens to train on, get 0."""
    return [
        baselines[prompt] if has_any else 0.0 for prompt, has_any in zip(prompts, has_tokens, strict=True)
    ]
