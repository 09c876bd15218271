"""Waiting for what other processes and threads do, with a bound and a word about what was awaited."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

from trellis_tools.ci.runner import PATIENCE_VARIABLE

Found = TypeVar("Found")
#: How many times as long as alone on the machine: beside other suites all that is awaited takes its turn.
PATIENCE = float(os.environ.get(PATIENCE_VARIABLE, "1"))


def wait_until(look: Callable[[], Found], timeout_s: float, what: str, pause_s: float = 0.05) -> Found:
    """Look until there is something to see; the answer is what was seen."""
    timeout_s *= PATIENCE
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(pause_s)
    return found
