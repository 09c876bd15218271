"""Shares a lookup in the database among the requests that ask for the same thing at the same time."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from fastapi.concurrency import run_in_threadpool


class SharedLookups:
    """Lookups under way, of one event loop. A result is kept for nobody who asks after it is there.

    Who joins a lookup gets what it read a moment before: as if the request had come then.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, look: Callable[..., Any], *what: Hashable) -> Any:
        """Call ``look(*what)`` in a thread, or wait for the same call that is under way.

        Raises what ``look`` raises, for all who wait.
        """
        key = (look, *what)
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(run_in_threadpool(look, *what))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: Hashable, done: asyncio.Task[Any]) -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # those who waited have it, or have left
