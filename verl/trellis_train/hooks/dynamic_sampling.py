"""DAPO's dynamic sampling with an end: verl's V1 trainer replaces prompts for as long as it takes.

Where a dataset is far too hard or too easy, all responses to almost every prompt fare
alike and no step would ever be filled.
"""

from typing import Any

from trellis_train.hooks.reward_errors import find_example, require_usable


class SamplingExhausted(RuntimeError):
    """A step has sampled as many prompts as it may and still lacks some."""


class BoundedSampling:
    """Mixed in before one of verl's trainers; ``Any`` stands for the trainer's own attributes."""

    config: Any
    global_steps: Any
    _sampled_step: int = -1
    _sampled: int = 0

    def _build_replay_buffer(self) -> Any:
        buffer = super()._build_replay_buffer()  # type: ignore[misc]

        def select_first(
            partition_id: str, sampleable_keys: set[str], batch_size: int
        ) -> tuple[list[str], dict[str, dict[str, Any]], dict[str, int]]:
            # Of more than enough prompts the first in the data, not those that a set happens to begin with.
            steps = dict(buffer.prompt_global_steps[partition_id])
            ordered = sorted(sampleable_keys, key=lambda key: (steps.get(key, 0), key))
            return ordered[:batch_size], dict(buffer.partitions[partition_id]), steps

        buffer._select_prompt_uids = select_first
        return buffer

    def _next_train_batch(self, num_prompts: int | None = None) -> Any:
        batch_size = self.config.data.train_batch_size
        if self._sampled_step != self.global_steps:
            self._sampled_step, self._sampled = self.global_steps, 0
        if self._sampled:
            # Responses without a reward are all alike, so that none of them ever reaches a step.
            require_usable(step=self.global_steps)
        self._sampled += num_prompts or batch_size
        groups = self.config.algorithm.filter_groups
        if 0 < groups.max_num_gen_batches * batch_size < self._sampled:
            raise SamplingExhausted(
                f"Dynamic sampling gave up: step {self.global_steps} has sampled "
                f"{groups.max_num_gen_batches} batches of {batch_size} prompts and still has too few, "
                f"because most groups have identical values of '{groups.metric}'."
                + (f" Rewards failed.{example}" if (example := find_example()) else "")
            )
        return super()._next_train_batch(num_prompts)  # type: ignore[misc]
