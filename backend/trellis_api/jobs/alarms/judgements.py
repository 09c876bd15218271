"""How the rules judge one step: pure functions of a value, its history and its companions.

Each says whether the step is wrong, in order, or cannot be judged (None). Thresholds and
their reasons stand in ``rules.py``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from trellis_api.jobs.alarms.watch import Track

#: Values that a comparison with the run's own past needs.
MIN_HISTORY = 5


@dataclass(frozen=True)
class Look:
    """One step of one track."""

    track: Track
    #: The followed key and its value at this step; not a number where the run said so.
    key: str
    value: float
    #: Finite value of another key at the same step, or None.
    at_step: Callable[[str], float | None]
    #: What the same rule remembers of another key, or None.
    other: Callable[[str], Track | None] = lambda _: None


@dataclass(frozen=True)
class Verdict:
    """Whether a step is wrong, by which value, and which bound it was held against."""

    is_bad: bool
    value: float | None
    threshold: float | None = None


Judge = Callable[[Look], Verdict | None]
#: Beyond any bound; there is no number to show.
_NOT_FINITE = Verdict(True, None)


def judge_finite(look: Look) -> Verdict:
    """Judge NaN and infinite values as wrong."""
    is_finite = math.isfinite(look.value)
    return Verdict(not is_finite, look.value if is_finite else None)


def judge_growth(
    *,
    level: float,
    factor: float,
    ceiling: float = math.inf,
    release: float = 1.0,
    is_finiteness_judged: bool = True,
) -> Judge:
    """Flag values above ``level`` and ``factor`` times the recent median, or above ``ceiling`` at once.

    An alarm that stands holds until the value is back below ``release`` times that bound. A value that is
    NaN or infinite is wrong too, unless another rule says that of the key (not ``is_finiteness_judged``).
    """

    def judge(look: Look) -> Verdict | None:
        if not math.isfinite(look.value):
            return _NOT_FINITE if is_finiteness_judged else None
        size = abs(look.value)
        usual = look.track.recent_median
        bound = ceiling
        if usual is not None and len(look.track.recent) >= MIN_HISTORY:
            bound = min(ceiling, max(level, factor * abs(usual)))
        if math.isinf(bound):
            return Verdict(False, size)
        if look.track.is_active:
            bound *= release
        return Verdict(size > bound, size, bound)

    return judge


def judge_against_start(*, factor: float, margin: float) -> Judge:
    """Flag values above ``factor`` times the run's first values plus ``margin``."""

    def judge(look: Look) -> Verdict | None:
        if not math.isfinite(look.value):
            return None
        start = look.track.early_median
        bound = math.inf if start is None else factor * max(start, 0.0) + margin
        return Verdict(look.value > bound, look.value, bound if math.isfinite(bound) else None)

    return judge


def judge_collapse(*, share: float, level: float, release: float) -> Judge:
    """Flag values below ``share`` of the start and ``level``, until above ``release`` times that.

    It began at its first value, that of the model before any update, or at the median of its first ones
    where that is higher. Values that are wrong are not among these: a collapse within the first steps does
    not become what later steps are held against.
    """

    def judge(look: Look) -> Verdict | None:
        first, usual = look.track.first_value, look.track.early_median
        if not math.isfinite(look.value):
            return None
        if first is None or usual is None:
            return Verdict(False, look.value)
        start = max(first, usual)
        bound = min(level, share * start) * (release if look.track.is_active else 1.0)
        return Verdict(look.value < bound, look.value, bound)

    return judge


def judge_worse_than_best(*, factor: float) -> Judge:
    """Flag values above ``factor`` times the lowest one so far."""

    def judge(look: Look) -> Verdict | None:
        best = look.track.recent_minimum
        if not math.isfinite(look.value):
            return None
        if best is None:
            return Verdict(False, look.value)
        bound = factor * best if best > 0 else best + (factor - 1.0)
        return Verdict(look.value > bound, look.value, bound)

    return judge


def judge_above(*, bound: float, release: float) -> Judge:
    """Flag values at ``bound`` or above; an alarm ends below ``release``."""

    def judge(look: Look) -> Verdict | None:
        if not math.isfinite(look.value):
            return None
        limit = release if look.track.is_active else bound
        return Verdict(look.value >= limit, look.value, limit)

    return judge


def judge_outside(*, low: float, high: float) -> Judge:
    """Flag values outside ``low`` to ``high``, NaN and infinite ones."""

    def judge(look: Look) -> Verdict:
        if not math.isfinite(look.value):
            return _NOT_FINITE
        return Verdict(not low <= look.value <= high, look.value, high if look.value > high else low)

    return judge


def judge_all_zero(*, highest: str, lowest: str) -> Judge:
    """Flag steps with zero for every reward."""

    def judge(look: Look) -> Verdict | None:
        top, bottom = look.at_step(highest), look.at_step(lowest)
        if top is None or bottom is None:
            return None
        return Verdict(top == bottom == 0.0, top, 0.0)

    return judge


def judge_all_equal(*, highest: str, lowest: str) -> Judge:
    """Flag steps with equal rewards other than zero (``rewards_all_zero`` covers that)."""

    def judge(look: Look) -> Verdict | None:
        top, bottom = look.at_step(highest), look.at_step(lowest)
        if top is None or bottom is None:
            return None
        is_equal = math.isclose(top, bottom, rel_tol=1e-9, abs_tol=1e-12)
        return Verdict(is_equal and top != 0.0, top)

    return judge


def judge_uniform_groups(*, bound: float, highest: str) -> Judge:
    """Flag steps with equal rewards within (nearly) every group, unless they are all zero."""

    def judge(look: Look) -> Verdict | None:
        if not math.isfinite(look.value):
            return None
        is_all_zero = look.at_step(highest) == 0.0
        return Verdict(look.value >= bound and not is_all_zero, look.value, bound)

    return judge


def judge_correlation(*, bound: float, differences: str, least_difference: float) -> Judge:
    """Flag sets of probabilities that correlate too little while they differ enough to matter."""

    def judge(look: Look) -> Verdict | None:
        difference = look.at_step(differences)
        if not math.isfinite(look.value) or difference is None:
            return None
        return Verdict(look.value < bound and difference > least_difference, look.value, bound)

    return judge


def judge_growth_paid(*, correlation: str, least: float, factor: float) -> Judge:
    """Flag values above ``factor`` times the first ones while they correlate with the score by ``least``."""

    def judge(look: Look) -> Verdict | None:
        paid, start = look.at_step(correlation), look.track.early_median
        if not math.isfinite(look.value):
            return None
        if start is None:
            return Verdict(False, look.value)
        bound = factor * start
        return Verdict(look.value > bound and paid is not None and paid >= least, look.value, bound)

    return judge


def judge_diverging(*, rising: str, share: float, least: float) -> Judge:
    """Flag values below the first ones while ``rising`` is above its own, each by ``share`` or ``least``."""

    def judge(look: Look) -> Verdict | None:
        if not math.isfinite(look.value):
            return None
        start = look.track.early_median
        grown = look.other(rising)
        if look.key == rising or start is None or grown is None:
            return Verdict(False, look.value)
        first, now = grown.early_median, grown.recent_median
        if first is None or now is None:
            return Verdict(False, look.value)
        bound = start - max(least, share * abs(start))
        has_risen = now >= first + max(least, share * abs(first))
        return Verdict(look.value < bound and has_risen, look.value, bound)

    return judge


def judge_without_progress(*, trained: str, least: float, share: float) -> Judge:
    """Flag values whose gain is below ``share`` of that of ``trained``, once that gained ``least``.

    A value that is not below that of ``trained`` has nothing left to gain on it, and is in order.
    """

    def judge(look: Look) -> Verdict | None:
        if not math.isfinite(look.value):
            return None
        score, first = look.other(trained), look.track.first_value
        if look.key == trained or score is None or first is None:
            return Verdict(False, look.value)
        before, now = score.early_median, score.recent_median
        if before is None or now is None or now - before < least or look.value >= now:
            return Verdict(False, look.value)
        bound = first + share * (now - before)
        return Verdict(look.value < bound, look.value, bound)

    return judge


def judge_probe(*, baseline: str, share: float, least: float) -> Judge:
    """Flag a trick that earns ``share`` of what the policy's own responses earn, if that is ``least``."""

    def judge(look: Look) -> Verdict | None:
        earned = look.at_step(baseline)
        if look.key == baseline or earned is None or not math.isfinite(look.value):
            return None
        bound = share * earned
        return Verdict(earned >= least and look.value >= bound, look.value, bound)

    return judge
