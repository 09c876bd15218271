"""Whether a score has stopped getting better: pure arithmetic on what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Plateau:
    """A score that has not become better for as many evaluations as were to be waited for."""

    best: float
    best_step: int
    last_step: int
    #: Evaluations since the best one.
    count: int


def find_plateau(
    points: Sequence[tuple[int, float]],
    *,
    patience: int,
    min_delta: float,
    mode: Literal["max", "min"],
    after_step: int = -1,
) -> Plateau | None:
    """Return the plateau that the points (step, finite value; sorted by step) end with, if there is one.

    As in Keras' EarlyStopping: a value counts as better when it beats the best so far by more than
    ``min_delta``, and ``patience`` values without a better one are a plateau. Values up to ``after_step``
    can be the best, and are not counted: a run that was resumed gets its whole patience again. Points behind
    one that is still being measured do not belong here: it might turn out to be the best.
    """
    sign = 1.0 if mode == "max" else -1.0
    best: tuple[int, float] | None = None
    count = 0
    for step, value in points:
        if best is None or sign * (value - best[1]) > min_delta:
            best, count = (step, value), 0
        elif step > after_step:
            count += 1
    if best is None or count < patience:
        return None
    return Plateau(best=best[1], best_step=best[0], last_step=points[-1][0], count=count)
