"""Which faults come, in which order and when: drawn from a seed, before anything is known of the platform."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Undisturbed load before a fault: from a run that has hardly begun to one that is over.
_PAUSE_S = (1.0, 15.0)


@dataclass(frozen=True)
class PlannedFault:
    """One fault of a campaign."""

    #: 1, 2, 3 ...
    number: int
    kind: str
    #: How long the load goes on undisturbed before it.
    pause_s: float
    #: 0 to 1: how long it lasts between what its kind knows as shortest and longest.
    length: float
    #: For kinds that choose between targets.
    choice_seed: int


def plan_faults(seed: int, kinds: Sequence[str]) -> Iterator[PlannedFault]:
    """Yield faults forever. Every kind comes once, in random order, before any comes again.

    The same seed gives the same faults for the same kinds, in whichever order they are named.
    """
    draw = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    number = 0
    while True:
        bag = sorted(kinds)
        draw.shuffle(bag)
        for kind in bag:
            number += 1
            yield PlannedFault(
                number, kind, draw.uniform(*_PAUSE_S), draw.random(), choice_seed=draw.getrandbits(32)
            )
