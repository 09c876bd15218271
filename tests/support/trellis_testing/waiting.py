"""Waiting for what other processes and threads do, with a bound and a word about what was awaited."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_until(look: Callable[[], Found], timeout_s: float, what: str, pause_s: float = 0.05) -> Found:
    """Look until there is something to see; the answer is what was seen."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(pause_s)
    return found
