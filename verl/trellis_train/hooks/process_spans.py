"""What one process of a run did when: its spans stay here, bounded, until the trainer takes them.

Taken with the clock alone, around what the process does anyway. Imports nothing that is slow to load.
"""

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

#: (phase, start, end), in seconds since 1970.
Span = tuple[str, float, float]
#: The newest ones are kept; the trainer asks for those of a step.
MAX_KEPT = 10_000
#: Spans of a phase that are no further apart are one: no chart could show the gap.
GAP_S = 0.002


class Place(NamedTuple):
    """Where a process runs."""

    node: str
    pid: int
    gpus: tuple[str, ...] = ()


def find_place(gpus: Sequence[object] = ()) -> Place:
    """Return the place where this process, which uses ``gpus``, runs."""
    return Place(socket.gethostname(), os.getpid(), tuple(str(gpu) for gpu in gpus))


class ProcessSpans:
    """Spans of the phases of a process since they were taken last; calls that overlap make one span."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._spans: deque[Span] = deque(maxlen=MAX_KEPT)
        #: Of phases that are under way: calls, and since when.
        self._running: dict[str, tuple[int, float]] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Time a call, also where it raises."""
        calls, since = self._running.get(phase) or (0, self._clock())
        self._running[phase] = (calls + 1, since)
        try:
            yield
        finally:
            calls, since = self._running.pop(phase)
            if calls > 1:
                self._running[phase] = (calls - 1, since)
            else:
                self._add(phase, since, self._clock())

    def take(self) -> list[Span]:
        """Take the spans so far, ordered by end; a running phase is included up to now."""
        now = self._clock()
        running = [(phase, since, now) for phase, (_, since) in self._running.items()]
        taken = [*self._spans, *running]
        self._spans.clear()
        self._running = {phase: (calls, now) for phase, (calls, _) in self._running.items()}
        return taken

    def _add(self, phase: str, start: float, end: float) -> None:
        last = self._spans[-1] if self._spans else None
        if last is not None and last[0] == phase and start - last[2] <= GAP_S:
            self._spans[-1] = (phase, last[1], end)
        else:
            self._spans.append((phase, start, end))


#: Of this process.
SPANS = ProcessSpans()
