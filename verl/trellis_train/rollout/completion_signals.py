"""Signal the trainer when prompts are finished, instead of polling the TransferQueue every 2 s as verl does.

Asked more often, the queue's list of all samples takes the time in which they are
made; asked less often, the trainer sleeps while they wait.
"""

import asyncio
from typing import Any

import ray

#: While other prompts are unanswered, the trainer hears of answered ones this often.
INTERVAL_S = 0.1


class CompletionSignal:
    """Of one agent-loop worker: how many prompts are unanswered, and whether some were answered."""

    def __init__(self) -> None:
        self._open = 0
        self._settled = asyncio.Event()
        self._all_settled = asyncio.Event()

    def expect(self, count: int) -> None:
        """Add ``count`` prompts that have been asked for."""
        self._open += count
        self._all_settled.clear()

    def settle(self, count: int) -> None:
        """Mark ``count`` prompts as ready to read."""
        self._open -= count
        self._settled.set()
        if self._open <= 0:
            self._all_settled.set()

    async def wait(self) -> None:
        """Return when prompts are answered: at once if they are the last, else after a short while."""
        await self._settled.wait()
        try:
            async with asyncio.timeout(INTERVAL_S):
                await self._all_settled.wait()
        except TimeoutError:
            pass  # others take longer; those that are answered may be what the trainer lacks
        self._settled.clear()


class CompletionSignalFrom:
    """The trainer's side: one question to each worker is always open."""

    def __init__(self) -> None:
        self._asked: dict[Any, Any] = {}

    def wait(self, workers: list[Any], timeout_s: float) -> None:
        """Return when one of ``workers`` has news, or after ``timeout_s``."""
        for worker in workers:
            if worker not in self._asked.values():
                self._asked[worker.wait_for_news.remote()] = worker
        ready, _ = ray.wait(list(self._asked), num_returns=1, timeout=timeout_s)
        for reference in ready:
            del self._asked[reference]
            ray.get(reference)
