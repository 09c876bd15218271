"""The memory that a command takes: proportional set size of all of its processes, sampled while it runs."""

import ctypes
import os
import threading
from types import TracebackType
from typing import Self

import psutil

PAUSE_S = 0.5
_PR_SET_CHILD_SUBREAPER = 36


class PeakMemory:
    """Samples the processes that are started below this one; shared pages count once (PSS).

    A process whose parent ended counts on: orphans become children of this process.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._done = threading.Event()
        self._before: set[int] = set()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        _adopt_orphans(True)
        self._before = {each.pid for each in _descendants()}
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        _adopt_orphans(False)

    def _watch(self) -> None:
        while not self._done.wait(PAUSE_S):
            total = sum(_pss(each) for each in _descendants() if each.pid not in self._before)
            self.peak_bytes = max(self.peak_bytes, total)


def _adopt_orphans(is_wanted: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_wanted), 0, 0, 0)


def _descendants() -> list[psutil.Process]:
    return psutil.Process(os.getpid()).children(recursive=True)


def _pss(process: psutil.Process) -> int:
    """Bytes of a process; 0 for one that has ended in the meantime."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0
