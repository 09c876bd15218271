"""What the rules remember of one attempt's metrics between two batches: a few numbers, however long it runs.

Every value is looked at once, when it arrives. Within a key steps ascend; a value at or
before a step that was judged already changes nothing, so it does not matter in how many
pieces, in which order of keys or how often a step is reported.
"""

import math
from collections.abc import Iterable
from statistics import median

from pydantic import BaseModel, Field

#: Values that a rule may compare with: the run's first ones, and its latest ones that were in order.
EARLY_VALUES = 8
RECENT_VALUES = 16
#: Keys that one rule, and all together, follow at most; a run may invent any number of names.
MAX_TRACKS = 32
MAX_KEYS = 256

Point = tuple[int, float]


class Track(BaseModel):
    """One thing that a rule follows: usually one key."""

    #: The last step that was judged.
    step: int = -1
    #: Steps in a row that were wrong, or in order.
    bad: int = 0
    good: int = 0
    is_active: bool = False
    #: Where the stretch of wrong steps began.
    first_bad: int = -1
    early: list[Point] = Field(default_factory=list)
    recent: list[Point] = Field(default_factory=list)

    @property
    def first_value(self) -> float | None:
        """The run's very first one that was in order; None before it."""
        return self.early[0][1] if self.early else None

    @property
    def early_median(self) -> float | None:
        """Typical value of the run's beginning; None before the first."""
        return median(value for _, value in self.early) if self.early else None

    @property
    def recent_median(self) -> float | None:
        """Typical value of late; None before the first."""
        return median(value for _, value in self.recent) if self.recent else None

    @property
    def recent_minimum(self) -> float | None:
        """Lowest value of late; None before the first."""
        return min((value for _, value in self.recent), default=None)

    def remember(self, step: int, value: float) -> None:
        """Take a value that was in order into the comparison."""
        if len(self.early) < EARLY_VALUES:
            self.early.append((step, value))
        self.recent = [*self.recent[-RECENT_VALUES + 1 :], (step, value)]

    def forget_behind(self, last_step: int) -> None:
        """Forget everything that was reported after a step."""
        self.early = [point for point in self.early if point[0] <= last_step]
        self.recent = [point for point in self.recent if point[0] <= last_step]
        self.step = min(self.step, last_step)
        self.bad = self.good = 0
        self.is_active = False


class Watch(BaseModel):
    """The memory of all rules."""

    #: By rule, by what it follows.
    tracks: dict[str, dict[str, Track]] = Field(default_factory=dict)
    #: The newest value of every followed key; None stands for one that is not finite.
    latest: dict[str, tuple[int, float | None]] = Field(default_factory=dict)
    #: The newest steps, and when the run reported them (seconds since 1970, by the run's clock).
    steps: list[Point] = Field(default_factory=list)
    #: When a new step arrived last (by this machine's clock).
    seen_at: float | None = None
    #: Whether the run counts as stalled (``stall.py``).
    is_stalled: bool = False

    def note(self, step: int, values: Iterable[tuple[str, float]]) -> None:
        """Keep the newest values of followed keys."""
        for key, value in values:
            known = self.latest.get(key)
            has_room = known is not None or len(self.latest) < MAX_KEYS
            if has_room and (known is None or step >= known[0]):
                self.latest[key] = (step, value if math.isfinite(value) else None)

    def note_times(self, times: Iterable[Point], *, now: float) -> bool:
        """Keep when steps were reported; whether there is a new one among them."""
        known = self.last_step if self.last_step is not None else -1
        new = {step: reported_at for step, reported_at in times if step > known}
        if not new:
            return False
        self.steps = [*self.steps, *sorted(new.items())][-RECENT_VALUES:]
        self.seen_at = now
        return True

    @property
    def last_step(self) -> int | None:
        """The newest step; None before the first."""
        return self.steps[-1][0] if self.steps else None

    @property
    def step_time_s(self) -> float | None:
        """Typical time of a step of late; None before the third report."""
        pairs = zip(self.steps, self.steps[1:], strict=False)
        times = [(later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in pairs]
        return max(0.0, median(times)) if len(times) > 1 else None

    def forget_behind(self, last_step: int) -> None:
        """Forget everything after a step, and the times, which mean nothing in another attempt."""
        for tracks in self.tracks.values():
            for track in tracks.values():
                track.forget_behind(last_step)
        self.latest = {key: point for key, point in self.latest.items() if point[0] <= last_step}
        self.steps = []
        self.seen_at = None
        self.is_stalled = False
