"""Ends a process that takes more memory than it may, in the middle of its task."""

import contextlib
import threading
from collections.abc import Callable

import psutil

#: How often the memory of a process at work is measured.
_MEASURED_EVERY_S = 0.1


def resident_bytes(pid: int) -> int:
    """Measure the memory that a process holds, with everything that it started."""
    held = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                held += int(process.memory_info().rss)
    return held


class MemoryWatch:
    """Watches on a thread of its own: whoever waits for the process may be held up by the database."""

    def __init__(self, pid: int, kill: Callable[[], None], *, max_bytes: int) -> None:
        """Start watching; ``kill`` ends the process with everything that it started."""
        self._pid, self._kill, self._max_bytes = pid, kill, max_bytes
        self._is_over = threading.Event()
        #: Whether the process was killed for its memory.
        self.has_outgrown = False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(_MEASURED_EVERY_S):
            if resident_bytes(self._pid) > self._max_bytes:
                self.has_outgrown = True
                self._kill()
                return

    def end(self) -> None:
        """Stop watching."""
        self._is_over.set()
        self._thread.join()
