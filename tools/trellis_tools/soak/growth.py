"""Whether memory grows: samples of a run, its beginning against its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

#: The last third may hold so much more than the first.
MOST_GROWTH = 0.10
#: Caches fill and code is loaded meanwhile: this part of the samples is left out.
WARM_UP = 0.2
_FEWEST = 3


@dataclass(frozen=True)
class Growth:
    """The memory of one service over the run, in bytes."""

    name: str
    first: float
    last: float
    most: float

    @property
    def ratio(self) -> float:
        """By how much the last third is above the first."""
        return self.last / self.first - 1 if self.first else 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether that is little enough."""
        return self.ratio <= MOST_GROWTH


def measure_growth(name: str, samples: Sequence[int]) -> Growth:
    """Compare the thirds of the samples behind the warm-up; ``ValueError`` where there are too few."""
    warm = samples[int(len(samples) * WARM_UP) :]
    third = len(warm) // 3
    if third < _FEWEST:
        raise ValueError(f"{len(samples)} samples are not enough")
    return Growth(name, fmean(warm[:third]), fmean(warm[-third:]), max(samples))
