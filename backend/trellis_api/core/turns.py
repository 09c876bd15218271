"""Lets requests take turns at the database, and wait for theirs without a thread.

A request's transaction begins in one thread of the pool and goes on in another. Requests that waited in
threads for the write lock of SQLite, or for a connection, would take all of them: those that hold the lock
could not go on, and everybody would wait until the time-out.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trellis_api.core.database import BUSY_TIMEOUT_MS, Database
from trellis_api.core.errors import DatabaseBusy

#: Fewer than the threads of the pool (40), so that some are always free to go on.
_MOST_OPEN = 20


class Turns:
    """Transactions that requests have open, of one event loop."""

    def __init__(self, database: Database, *, patience_s: float = BUSY_TIMEOUT_MS / 1000) -> None:
        self._patience_s = patience_s
        self._open = asyncio.Semaphore(_MOST_OPEN)
        # SQLite lets one write at a time.
        self._writing = asyncio.Semaphore(1 if database.is_sqlite else _MOST_OPEN)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        """Hold a turn to read. Raises ``DatabaseBusy`` where none comes in time."""
        async with self._take(self._open):
            yield

    @asynccontextmanager
    async def write(self) -> AsyncIterator[None]:
        """Hold a turn to write. Raises ``DatabaseBusy`` where none comes in time."""
        async with self._take(self._writing), self._take(self._open):
            yield

    @asynccontextmanager
    async def _take(self, turn: asyncio.Semaphore) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._patience_s):
                await turn.acquire()
        except TimeoutError as error:
            raise DatabaseBusy("The database timed out. Try again.") from error
        try:
            yield
        finally:
            turn.release()
