"""Note when each response was begun and ended, and what it did meanwhile, where the trainer reads it.

It is a fact of the response like others: it travels with them through the TransferQueue.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: Among the extra fields of a response: (start, end) in seconds since 1970.
SPAN_KEY = "trellis_span"
#: Among them, too: (phase, start, end) of its parts.
PARTS_KEY = "trellis_parts"
#: Among the extra fields of a server's answer, until it has arrived: when the engine began the request, and
#: when it had made the last token, in seconds since 1970.
MOMENTS_KEY = "trellis_moments"
#: Parts of a response that are kept; an episode of more has none.
MAX_KEPT = 256
#: Clocks of two machines may differ by so much; by more, and moments of one mean nothing to the other.
_CLOCK_SKEW_S = 0.05
#: Shorter parts are left out.
_SHORTEST_S = 1e-4
Part = tuple[str, float, float]


class _Life:
    """Of one response."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self.parts: list[Part] = []


_life: ContextVar[_Life | None] = ContextVar("life_of_response", default=None)


def begin_response() -> None:
    """Start the clock of the response that this task is about to sample."""
    _life.set(_Life())


def end_response(outputs: Any) -> None:
    """Note the life with the outputs of an agent loop, all of which belong to one response.

    What is noted later, its scoring, gets there as well.
    """
    life = _life.get()
    if life is None:
        return
    ended_at = time.time()
    found: Sequence[Any] = outputs if isinstance(outputs, list) else [outputs]
    for output in found:
        output.extra_fields[SPAN_KEY] = (life.started_at, ended_at)
        output.extra_fields[PARTS_KEY] = life.parts


def note_part(phase: str, start: float, end: float) -> None:
    """Note what the response of this task did; nothing outside of one."""
    life = _life.get()
    if life is not None and end - start >= _SHORTEST_S and len(life.parts) <= MAX_KEPT:
        life.parts.append((phase, start, end))


@contextmanager
def measure_part(phase: str) -> Iterator[None]:
    """Time what the response of this task does, also where it raises."""
    start = time.time()
    try:
        yield
    finally:
        note_part(phase, start, time.time())


def note_request(started_at: float, answer: Any) -> None:
    """Note a request to an engine that is answered now: how long it waited, and how long it was computed."""
    fields = getattr(answer, "extra_fields", None)
    moments = fields.pop(MOMENTS_KEY, None) if isinstance(fields, dict) else None
    ended_at = time.time()
    if moments is None or not _is_between(started_at, moments, ended_at):
        note_part("request", started_at, ended_at)
        return
    scheduled_at, last_at = (min(max(each, started_at), ended_at) for each in moments)
    note_part("queued", started_at, scheduled_at)
    note_part("generate", scheduled_at, last_at)


def _is_between(start: float, moments: Sequence[float], end: float) -> bool:
    """Tell whether the engine's clock is that of this process, as far as one can know."""
    in_order = [start - _CLOCK_SKEW_S, *moments, end + _CLOCK_SKEW_S]
    return in_order == sorted(in_order)
