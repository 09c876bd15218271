"""What every kind of reward is at run time, and how it says that it cannot go on."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from trellis_train.rewards.sample import Sample


class RewardUnusable(RuntimeError):
    """The reward can score no response at all (any more): the run must end, and the message says why."""


class Scorer(Protocol):
    """One term of a mixture."""

    async def score(self, sample: Sample) -> float:
        """Return the score of a response.

        What it raises counts against this response alone; ``RewardUnusable`` counts against the run.
        """

    async def load(self) -> None:
        """Load now what can fail to load; ``RewardUnusable`` where it does. A second call does nothing."""

    async def close(self) -> None:
        """End processes and connections."""


@runtime_checkable
class HasParts(Protocol):
    """A scorer whose value comes with further figures that a person wants to see."""

    #: The same for every response; of one that cannot be scored they are 0.
    part_names: Sequence[str]

    async def score_parts(self, sample: Sample) -> tuple[float, dict[str, float]]:
        """Return the score of a response, as ``score`` does, and the value of every part by name."""


class PureScorer:
    """A reward function that takes microseconds and is called where it is."""

    def __init__(self, function: Callable[..., float], options: dict[str, Any]) -> None:
        self._function = function
        self._options = options

    async def score(self, sample: Sample) -> float:
        """Call the function."""
        return self._function(sample.response, sample.answer, **self._options)

    async def load(self) -> None:
        """Do nothing: there is nothing to load."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""
