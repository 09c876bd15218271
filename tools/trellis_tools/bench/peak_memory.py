"""The memory that a command takes: proportional set size of all of its processes, sampled while it runs."""

import ctypes
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import psutil

PAUSE_S = 0.5
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37


class PeakMemory:
    """Samples all processes below this one; shared pages count once (PSS).

    ``peak_bytes`` is what they take at most above what they took at the start. Orphans count on where
    they were started within `adopted_orphans`, as everything is that starts after the entry.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._baseline = 0
        self._done = threading.Event()
        self._orphans = adopted_orphans()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._orphans.__enter__()
        self._baseline = _total()
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
        self._orphans.__exit__(kind, error, trace)

    def _watch(self) -> None:
        while not self._done.wait(PAUSE_S):
            self.peak_bytes = max(self.peak_bytes, _total() - self._baseline)


@contextmanager
def adopted_orphans() -> Iterator[None]:
    """Have processes whose parent ends become children of this one, not of the machine's first."""
    libc = ctypes.CDLL(None)
    before = ctypes.c_int()
    libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def in_gib(peaks: Mapping[str, int]) -> dict[str, float]:
    """Convert peaks to GiB, for a result's details."""
    return {name: round(peak / 2**30, 2) for name, peak in peaks.items()}


def _total() -> int:
    return sum(pss(each) for each in psutil.Process(os.getpid()).children(recursive=True))


def pss(process: psutil.Process) -> int:
    """Return a process's PSS in bytes; 0 if it has ended in the meantime."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0
