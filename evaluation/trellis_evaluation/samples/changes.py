"""Which samples differ between two files of the same benchmark, by their problems' keys."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis_evaluation.samples.format import NUMBERS

Changed = Literal["any", "better", "worse"]
#: Spreads the generations of one problem over the 64 bits (the golden ratio's, Knuth 6.4).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class ChangeCounts:
    """Samples of this file against the same ones of another."""

    better: int
    worse: int
    #: Another verdict under the same score.
    otherwise: int
    same: int
    #: Without a counterpart in the other file, and of the other file without one here.
    only_here: int
    only_there: int


class SampleColumns(Protocol):
    """One number a sample, in the order of the ids."""

    @property
    def ids(self) -> NDArray[np.int64]: ...
    @property
    def verdicts(self) -> NDArray[np.uint8]: ...
    @property
    def scores(self) -> NDArray[np.float64]: ...
    @property
    def keys(self) -> NDArray[np.uint64]: ...


@dataclass(frozen=True)
class Changes:
    """Of each sample here, what became of it against its counterpart."""

    #: Whether it has one.
    paired: NDArray[np.bool_]
    #: Score here less score there; 0 without a counterpart.
    gains: NDArray[np.float64]
    #: Whether the verdict is another one.
    turned: NDArray[np.bool_]
    only_there: int

    def mask(self, changed: Changed) -> NDArray[np.bool_]:
        """Select the samples that got better or worse, or that differ in score or verdict."""
        better: NDArray[np.bool_] = np.greater(self.gains, 0)
        worse: NDArray[np.bool_] = np.less(self.gains, 0)
        return {"better": better, "worse": worse, "any": better | worse | self.turned}[changed]

    def counts(self, among: NDArray[np.bool_] | None = None) -> ChangeCounts:
        """Count the changes of each kind, of all samples or of some."""
        chosen = np.ones(len(self.gains), dtype=bool) if among is None else among
        better, worse = (self.gains > 0) & chosen, (self.gains < 0) & chosen
        otherwise = self.turned & (self.gains == 0) & chosen
        paired = int((self.paired & chosen).sum())
        changed = int(better.sum()) + int(worse.sum()) + int(otherwise.sum())
        return ChangeCounts(
            better=int(better.sum()),
            worse=int(worse.sum()),
            otherwise=int(otherwise.sum()),
            same=paired - changed,
            only_here=int(chosen.sum()) - paired,
            only_there=self.only_there,
        )


def find_changes(here: SampleColumns, there: SampleColumns) -> Changes:
    """Pair the samples of two files; the files may have drawn other problems in another order."""
    if np.array_equal(here.ids, there.ids) and np.array_equal(here.keys, there.keys):
        turned: NDArray[np.bool_] = np.not_equal(here.verdicts, there.verdicts)
        return Changes(np.ones(len(turned), dtype=bool), here.scores - there.scores, turned, only_there=0)
    mine, theirs = _names(here), _names(there)
    gains, turned = np.zeros(len(mine)), np.zeros(len(mine), dtype=bool)
    if not len(theirs):
        return Changes(turned.copy(), gains, turned, only_there=0)
    order = np.argsort(theirs)
    found = np.searchsorted(theirs, mine, sorter=order)
    places = order[np.minimum(found, len(theirs) - 1)]
    paired: NDArray[np.bool_] = np.equal(theirs[places], mine)
    partners = places[paired]
    gains[paired] = here.scores[paired] - there.scores[partners]
    turned[paired] = here.verdicts[paired] != there.verdicts[partners]
    return Changes(paired, gains, turned, only_there=len(theirs) - int(paired.sum()))


def _names(columns: SampleColumns) -> NDArray[np.uint64]:
    """Return ids that identify a generation in every file, from its problem's key and its number."""
    return columns.keys + (columns.ids % NUMBERS).astype(np.uint64) * _SPREAD
