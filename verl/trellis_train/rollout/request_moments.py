"""When vLLM began each request and when it had made the last token, as ``RequestOutput.metrics`` says.

The first token is no mark: on a CPU an engine may make several before it tells of any.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

#: Seconds since 1970: the engine began it, its last token.
Moments = tuple[float, float]
#: Requests whose moments wait to be taken; more are only those that nobody asks for.
MAX_KEPT = 65_536


class RequestMoments:
    """Moments of requests that have ended, by the id of the request, until they are taken."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ended: dict[str, Moments] = {}

    def noting(self, generate: Callable[..., AsyncGenerator[Any]]) -> Callable[..., AsyncIterator[Any]]:
        """Wrap an engine's ``generate`` to note its requests."""

        async def generate_noted(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            output = None
            async with aclosing(generate(*args, **kwargs)) as outputs:
                async for output in outputs:
                    yield output
            if output is not None:
                self._note(output)

        return generate_noted

    def take(self, request_id: str) -> Moments | None:
        """Take the moments of a request; None if the engine reported none."""
        return self._ended.pop(request_id, None)

    def _note(self, output: Any) -> None:
        told = output.metrics
        scheduled, last = getattr(told, "scheduled_ts", 0.0), getattr(told, "last_token_ts", 0.0)
        if not scheduled or not last or len(self._ended) >= MAX_KEPT:
            return
        # The engine's process is one of this machine, and so it has the same monotonic clock.
        offset = self._clock() - time.monotonic()
        self._ended[output.request_id] = (scheduled + offset, last + offset)
