"""Slows down guessing: failed logins are counted per address, in a sliding window."""

import threading
import time
from collections import deque
from collections.abc import Callable

MAX_FAILURES = 10
WINDOW_S = 60.0
MAX_ADDRESSES = 10_000


class LoginRateLimit:
    """Counts in memory: each API process allows its own attempts, which is fine for 256-bit secrets."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[str, deque[float]] = {}

    def wait_s(self, address: str) -> float:
        """Seconds until that address may try again; 0 if it may now."""
        with self._lock:
            failures = self._recent(address)
            if len(failures) < MAX_FAILURES:
                return 0.0
            return max(0.0, failures[0] + WINDOW_S - self._clock())

    def add_failure(self, address: str) -> None:
        """Remember a failed attempt."""
        with self._lock:
            if len(self._failures) >= MAX_ADDRESSES:
                self._failures.clear()
            self._recent(address).append(self._clock())

    def _recent(self, address: str) -> deque[float]:
        failures = self._failures.setdefault(address, deque(maxlen=MAX_FAILURES))
        while failures and failures[0] <= self._clock() - WINDOW_S:
            failures.popleft()
        return failures
