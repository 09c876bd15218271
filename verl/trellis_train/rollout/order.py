"""Names and order of prompts that repeat from run to run.

verl names prompts at random and trains on them in the order in which their
responses happened to arrive. Named after their place in the step and sorted by
name, the same job trains on the same mini-batches each time.
"""

from typing import Any


class PromptNames:
    """Names the prompts of each step: ``<step>-<place in the step>``."""

    def __init__(self) -> None:
        self._step = -1
        self._count = 0

    def take(self, step: int, count: int) -> list[str]:
        """The next ``count`` names of ``step``."""
        if step != self._step:
            self._step, self._count = step, 0
        first, self._count = self._count, self._count + count
        return [f"{step:07d}-{place:07d}" for place in range(first, self._count)]


def sort_samples(batch: Any) -> None:
    """Sort verl's ``KVBatchMeta`` in place by prompt, session and output."""

    def place(index: int) -> tuple[str, int, int]:
        uid, session, output = batch.keys[index].rsplit("_", 2)
        return uid, int(session), int(output)

    batch.reorder(sorted(range(len(batch.keys)), key=place))
