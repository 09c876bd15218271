"""Give prompts ids and an order that repeat from run to run.

verl names prompts at random and trains on them in the order in which their
responses happened to arrive. Named after their place in the step and sorted by
name, the same job trains on the same mini-batches each time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SampleKey:
    """A TransferQueue key ``{uid}_{session}_{index}``: prompt, sample of the group, output of the sample."""

    key: str
    uid: str
    session: int
    index: int

    @classmethod
    def parse(cls, key: str) -> "SampleKey":
        uid, session, index = key.rsplit("_", 2)
        return cls(key, uid, int(session), int(index))


class PromptNames:
    """Names the prompts of each step: ``<step>-<place in the step>``."""

    def __init__(self) -> None:
        self._step = -1
        self._count = 0

    def take(self, step: int, count: int) -> list[str]:
        """Return the next ``count`` names of ``step``."""
        if step != self._step:
            self._step, self._count = step, 0
        first, self._count = self._count, self._count + count
        return [f"{step:07d}-{place:07d}" for place in range(first, self._count)]


def real_keys(batch: Any) -> list[str]:
    """Return the keys of verl's ``KVBatchMeta`` without the padding of its mini-batches."""
    return [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding", False)]


def last_outputs(keys: Iterable[str]) -> Iterable[str]:
    """Return the key of each session's last output, in the order of the sessions."""
    last: dict[tuple[str, int], SampleKey] = {}
    for sample in map(SampleKey.parse, keys):
        place = (sample.uid, sample.session)
        if place not in last or last[place].index < sample.index:
            last[place] = sample
    return (sample.key for sample in last.values())


def sort_samples(batch: Any) -> None:
    """Sort verl's ``KVBatchMeta`` in place by prompt, session and output."""

    def place(index: int) -> tuple[str, int, int]:
        sample = SampleKey.parse(batch.keys[index])
        return sample.uid, sample.session, sample.index

    batch.reorder(sorted(range(len(batch.keys)), key=place))
