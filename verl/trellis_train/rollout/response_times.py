"""Note when each response was begun and ended, where the trainer reads it with the response's other facts."""

import time
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

#: Among the extra fields of a response: (start, end) in seconds since 1970.
SPAN_KEY = "trellis_span"
_started_at: ContextVar[float | None] = ContextVar("response_started_at", default=None)


def begin_response() -> None:
    """Start the clock of the response that this task is about to sample."""
    _started_at.set(time.time())


def end_response(outputs: Any) -> None:
    """Note start and end with the outputs of an agent loop, all of which belong to one response."""
    started_at = _started_at.get()
    if started_at is None:
        return
    ended_at = time.time()
    found: Sequence[Any] = outputs if isinstance(outputs, list) else [outputs]
    for output in found:
        output.extra_fields[SPAN_KEY] = (started_at, ended_at)
