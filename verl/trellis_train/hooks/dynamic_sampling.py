"""DAPO's dynamic sampling with an end: verl's V1 trainer replaces prompts for as long as it takes.

Where a dataset is far too hard or too easy, all responses to almost every prompt fare
alike and no step would ever be filled. A policy that solves its prompts is done; another one is stuck.
"""

from collections import Counter
from typing import Any

from trellis_train.hooks.checkpoints import locate_step
from trellis_train.hooks.reward_errors import find_example, require_usable

_PARTITION = "train"
#: A group is right where all of its responses have at least this value, wrong where none has more than that.
_RIGHT, _WRONG = 1.0, 0.0
#: The only metric whose 1 means a right answer: scores and rewards are sums of parts.
_ACCURACY = "acc"
#: Of the groups of a step this share has to be right for the data to be solved.
SOLVED_SHARE = 0.9


class SamplingExhausted(RuntimeError):
    """A step has sampled as many prompts as it may and still lacks some."""


class PolicySolved(RuntimeError):
    """A step lacks prompts because the policy answers nearly all of them right: nothing is left to learn."""


class BoundedSampling:
    """Mixed in before one of verl's trainers; ``Any`` stands for the trainer's own attributes."""

    config: Any
    global_steps: Any
    total_training_steps: Any
    replay_buffer: Any
    _planned_steps: int | None
    _sampled_step: int = -1
    _sampled: int = 0
    #: Of the step's groups whose responses all fared alike: how many by the value that they share.
    _alike: Counter[float]

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().fit(*args, **kwargs)  # type: ignore[misc]
        except PolicySolved as solved:
            self._end_solved()
            print(f"{type(solved).__name__}: {solved}", flush=True)
            return None

    def _build_replay_buffer(self) -> Any:
        buffer = super()._build_replay_buffer()  # type: ignore[misc]
        self._alike = Counter()
        evict = buffer._evict_terminal_groups

        def select_first(
            partition_id: str, sampleable_keys: set[str], batch_size: int
        ) -> tuple[list[str], dict[str, dict[str, Any]], dict[str, int]]:
            # Of more than enough prompts the first in the data, not those that a set happens to begin with.
            steps = dict(buffer.prompt_global_steps[partition_id])
            ordered = sorted(sampleable_keys, key=lambda key: (steps.get(key, 0), key))
            return ordered[:batch_size], dict(buffer.partitions[partition_id]), steps

        def count_and_evict(global_steps: int, partition_id: str, reasons: Any) -> Any:
            if partition_id == _PARTITION:
                self._alike.update(reasons[3])
            return evict(global_steps, partition_id, reasons)

        buffer._select_prompt_uids = select_first
        buffer._evict_terminal_groups = count_and_evict
        return buffer

    def _next_train_batch(self, num_prompts: int | None = None) -> Any:
        batch_size = self.config.data.train_batch_size
        if self._sampled_step != self.global_steps:
            self._sampled_step, self._sampled = self.global_steps, 0
            self._alike.clear()
        if self._sampled:
            # Responses without a reward are all alike, so that none of them ever reaches a step.
            require_usable(step=self.global_steps)
        self._sampled += num_prompts or batch_size
        groups = self.config.algorithm.filter_groups
        if 0 < groups.max_num_gen_batches * batch_size < self._sampled:
            raise self._explain()
        return super()._next_train_batch(num_prompts)  # type: ignore[misc]

    def _explain(self) -> PolicySolved | SamplingExhausted:
        """Explain why the step cannot be filled, with the shares of groups that are right and wrong."""
        groups, batch_size = self.config.algorithm.filter_groups, self.config.data.train_batch_size
        right = sum(count for value, count in self._alike.items() if value >= _RIGHT)
        wrong = sum(count for value, count in self._alike.items() if value <= _WRONG)
        differing = len(self.replay_buffer.finished_keys[_PARTITION])
        judged = self._alike.total() + differing
        batches = groups.max_num_gen_batches
        sampled = f"step {self.global_steps} has sampled {batches} batches of {batch_size} prompts"
        shares = (
            f"of {judged} groups, {_percent(right, judged)} have only right responses, "
            f"{_percent(wrong, judged)} only wrong ones ('{groups.metric}')"
        )
        example = find_example()
        # Before the first step there is nothing to save: the data are too easy.
        may_be_solved = groups.metric == _ACCURACY and int(self.global_steps) > 1 and not example
        if may_be_solved and judged and right >= SOLVED_SHARE * judged:
            return PolicySolved(f"The policy solves nearly every sampled prompt: {sampled}; {shares}.")
        failed = f" Rewards failed.{example}" if example else ""
        return SamplingExhausted(
            f"Dynamic sampling gave up: {sampled} and still has too few: {shares}.{failed}"
        )

    def _end_solved(self) -> None:
        """Save what the last whole step left, unless it is saved already, and have the run end there."""
        buffer = self.replay_buffer
        while buffer.pending_keys[_PARTITION] or buffer.running_keys[_PARTITION]:
            buffer._wait_for_next_poll(_PARTITION, 0.0)
            buffer._sync_metadata_from_transfer_queue()
        self.on_sample_end()  # type: ignore[attr-defined]
        self._planned_steps = self.total_training_steps
        # The step that was begun has changed nothing.
        self.total_training_steps = self.global_steps = int(self.global_steps) - 1
        folder = locate_step(self.config.trainer.default_local_dir, self.global_steps)
        if self.global_steps > 0 and not folder.exists():
            self._save_checkpoint()  # type: ignore[attr-defined]
        self._shutdown_dump_executor()  # type: ignore[attr-defined]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"
