"""What a run's time goes into: spans of the trainer's phases, and the life of sampled responses.

Taken with the clock alone, around what trainers do anyway. Of at most ``MAX_TIMELINES`` steps, spread over
the run, the spans are told one by one; the durations of all steps are metrics (``timing_s/<phase>``).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from trellis_contracts.events import (
    MAX_LANES,
    MAX_PARTS,
    MAX_PARTS_OF_STEP,
    MAX_SPANS,
    MAX_TIMED_RESPONSES,
    TimelineEvent,
    TimelineLane,
    TimelinePlace,
    TimelineResponse,
    TimelineSpan,
)

from trellis_train.hooks.clock import now
from trellis_train.hooks.engine_loads import Sample, describe_loads
from trellis_train.hooks.process_spans import Place, Span

MAX_TIMELINES = 200
#: The process that runs the loop.
TRAINER_LANE = "trainer"
#: One of several such processes, with its number.
RANK_LANE = "rank"
PREFIX = "timing_s/"
#: Holds all other phases.
STEP = "step"
#: The validation after a step, as verl names it.
TESTING = "testing"
#: Between two phases: data are loaded, metrics are written.
BETWEEN = "between"


class Lane(NamedTuple):
    """What one process did during a step."""

    name: str
    place: Place
    spans: Sequence[Span]

    @property
    def kind(self) -> str:
        """Its name without the number."""
        return self.name.partition(" ")[0]


class ResponseLife(NamedTuple):
    """When one response was sampled, and what it did meanwhile, its scoring included."""

    group: str
    start: float
    end: float
    tokens: int
    parts: Sequence[Span] = ()


def is_due(step: int, total_steps: int | None) -> bool:
    """Tell whether the spans of a step are reported."""
    return step % max(1, -(-(total_steps or 1) // MAX_TIMELINES)) == 0


class Timings(dict[str, float]):
    """Seconds by phase as verl's timers add them up, which also keeps when each phase ran."""

    def __init__(self, values: Mapping[str, float], clock: Callable[[], float] = time.time) -> None:
        super().__init__(values)
        self._clock = clock
        self.started_at = clock()
        self.spans: list[Span] = []

    def __setitem__(self, phase: str, total_s: float) -> None:
        took_s = total_s - self.get(phase, 0.0)
        super().__setitem__(phase, total_s)
        if took_s > 0 and phase != STEP:
            end = self._clock()
            self.spans.append((phase, end - took_s, end))


class PhaseTimes:
    """Times the phases of a trainer that has no timers of its own."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._last_end = clock()
        self._sums: dict[str, float] = {}
        self._steps = 0
        #: Of the step that is under way.
        self.spans: list[Span] = []

    def restart(self) -> None:
        """Forget what was before: the loop begins now."""
        self._last_end = self._clock()

    def begin_step(self) -> list[Span]:
        """Start a step and return the previous step's spans; time since its last phase is the new step's."""
        spans, self.spans = self.spans, []
        self._steps += 1
        self._add(BETWEEN, self._last_end, self._clock())
        return spans

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Time a phase, also where it raises."""
        start = self._clock()
        try:
            yield
        finally:
            self._add(phase, start, self._clock())

    def mark(self, phase: str) -> None:
        """End a phase that began where the last one ended."""
        self._add(phase, self._last_end, self._clock())

    def take(self, *phases: str) -> dict[str, float]:
        """Return metrics of phases measured since they were last taken; without names, means of steps."""
        if phases:
            return {PREFIX + name: self._sums.pop(name) for name in phases if name in self._sums}
        if not self._steps:
            return {}
        found = {PREFIX + name: total / self._steps for name, total in self._sums.items()}
        found[PREFIX + STEP] = sum(found.values())
        self._sums, self._steps = {}, 0
        return found

    def _add(self, phase: str, start: float, end: float) -> None:
        self._last_end = end
        self._sums[phase] = self._sums.get(phase, 0.0) + end - start
        last = self.spans[-1] if self.spans else None
        if last is not None and last[0] == phase:  # batch by batch
            self.spans[-1] = (phase, last[1], end)
        else:
            self.spans.append((phase, start, end))


def describe_step(
    step: int,
    spans: Sequence[Span],
    *,
    started_at: float | None = None,
    place: Place | None = None,
    responses: Sequence[ResponseLife] = (),
    loads: Sequence[Sequence[Sample]] = (),
    ranks: Sequence[Lane] = (),
    others: Sequence[Lane] = (),
) -> TimelineEvent | None:
    """Build the event of a step whose trainer, at ``place``, had ``spans``; None without any.

    Of more ``responses`` than can be told the longest are kept, and others evenly between them. ``loads`` are
    samples of the rollout engines. ``ranks`` are all processes that run the loop, where there are several;
    ``spans`` are those of the first. ``others`` are processes that it calls.
    """
    if not spans:
        return None
    lanes: list[tuple[str, Place | None, Sequence[Span]]] = [(TRAINER_LANE, place, spans)]
    if len(ranks) > 1:
        lanes = list(ranks)
    moments = [moment for _, _, own in lanes for _, *ends in own for moment in ends]
    begin, end = min(moments), max(moments)
    begin = begin if started_at is None else min(begin, started_at)
    lanes += [(name, its, cut_spans(own, begin, end)) for name, its, own in others]
    told = _choose(responses)
    return TimelineEvent(
        time=now(),
        step=step,
        started_at=datetime.fromtimestamp(begin, UTC),
        duration_s=_round(end - begin),
        lanes=[
            TimelineLane(name=name, spans=_describe_spans(own, begin), place=_describe_place(its))
            for name, its, own in lanes[:MAX_LANES]
        ],
        lane_count=len(lanes),
        responses=[
            TimelineResponse(
                group=each.group[:256],
                start_s=_round(each.start - begin),
                end_s=_round(each.end - begin),
                tokens=each.tokens,
                parts=_describe_spans(parts, begin),
            )
            for each, parts in zip(told, _choose_parts(told), strict=True)
        ],
        response_count=len(responses),
        engines=describe_loads(loads[:MAX_LANES], begin),
    )


def _describe_place(place: Place | None) -> TimelinePlace | None:
    if place is None:
        return None
    return TimelinePlace(node=place.node[:255], pid=place.pid, gpus=list(place.gpus[:64]))


def cut_spans(spans: Sequence[Span], begin: float, end: float) -> list[Span]:
    """Clip ``spans`` to the time between ``begin`` and ``end``."""
    cut = [(phase, max(begin, start), min(end, stop)) for phase, start, stop in spans]
    return [span for span in cut if span[2] > span[1]]


def add_up_spans(spans: Sequence[Span]) -> float:
    """Return the total time covered by the spans; overlaps count once."""
    total, until = 0.0, float("-inf")
    for _, start, stop in sorted(spans, key=lambda span: span[1]):
        total += max(0.0, stop - max(start, until))
        until = max(until, stop)
    return total


def _describe_spans(spans: Sequence[Span], begin: float) -> list[TimelineSpan]:
    return [
        TimelineSpan(phase=phase[:64], start_s=_round(start - begin), end_s=_round(stop - begin))
        for phase, start, stop in sorted(_join_nearest(spans, MAX_SPANS), key=lambda span: span[1])
    ]


def _join_nearest(spans: Sequence[Span], most: int) -> Sequence[Span]:
    """Reduce ``spans`` to at most ``most``: the nearest ones of the same phase are joined."""
    surplus = len(spans) - most
    if surplus <= 0:
        return spans
    in_order = sorted(spans)  # by phase, then by start
    gaps = [
        (after[1] - before[2], place)
        for place, (before, after) in enumerate(pairwise(in_order), start=1)
        if before[0] == after[0]
    ]
    joined = {place for _, place in sorted(gaps)[:surplus]}
    found: list[Span] = []
    for place, (phase, start, stop) in enumerate(in_order):
        if place in joined:
            found[-1] = (phase, found[-1][1], max(found[-1][2], stop))
        else:
            found.append((phase, start, stop))
    return found[:most]


def _choose(responses: Sequence[ResponseLife]) -> Sequence[ResponseLife]:
    chosen = sorted(responses, key=lambda each: each.start - each.end)
    if len(chosen) > MAX_TIMED_RESPONSES:
        longest, others = chosen[: MAX_TIMED_RESPONSES // 2], chosen[MAX_TIMED_RESPONSES // 2 :]
        stride = -(-len(others) // (MAX_TIMED_RESPONSES // 2))
        chosen = [*longest, *others[::stride]]
    return sorted(chosen, key=lambda each: each.start)


def _choose_parts(responses: Sequence[ResponseLife]) -> list[Sequence[Span]]:
    """Choose whose parts are reported: all or none per response, longest responses first."""
    told: list[Sequence[Span]] = [()] * len(responses)
    room = MAX_PARTS_OF_STEP
    by_length = sorted(range(len(responses)), key=lambda place: responses[place].start - responses[place].end)
    for place in by_length:
        parts = responses[place].parts
        if len(parts) <= min(room, MAX_PARTS):
            told[place] = parts
            room -= len(parts)
    return told


def _round(seconds: float) -> float:
    """Round to tenths of a millisecond: clocks of machines agree no better."""
    return round(seconds, 4)


def measure_responses(spans: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Measure how long responses took; empty if that is not known."""
    durations = sorted(end - start for start, end in spans)
    if not durations:
        return {}
    median = durations[len(durations) // 2]
    found = {"response_time_s/median": median, "response_time_s/max": durations[-1]}
    # Time in which the last tenth of the responses were still being written, and most engines waited.
    ends = sorted(end for _, end in spans)
    begun = min(start for start, _ in spans)
    if ends[-1] > begun:
        ninth = ends[max(0, -(-len(ends) * 9 // 10) - 1)]
        found["response_time_s/tail_fraction"] = (ends[-1] - ninth) / (ends[-1] - begun)
    return found


def as_span(value: Any) -> tuple[float, float] | None:
    """Parse the span that the rollout worker noted of a response; None if there is none."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return None
    return float(value[0]), float(value[1])


def as_parts(value: Any) -> list[Span]:
    """Parse the parts that the rollout worker noted of a response; empty if there are none."""
    if not isinstance(value, tuple | list):
        return []
    return [(str(phase), float(start), float(stop)) for phase, start, stop in value]
