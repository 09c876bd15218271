"""Notes when the supervising processes of runs end, by looking at them: nobody's word is needed for it."""

import threading
import time

from trellis_tools.chaos.invariants import RunEnd
from trellis_tools.chaos.processes import RunFinder

_POLL_S = 0.3


class RunEnds:
    """A thread that looks at the runs of a platform."""

    def __init__(self, runs: RunFinder) -> None:
        self._runs = RunFinder(runs.data_root)
        self._alive: dict[str, float] = {}
        self._ends: dict[str, RunEnd] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="run-ends", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join(5)

    def note_frozen(self, job_id: str, at: float) -> None:
        """Record that the run is frozen from this moment, which counts as its end."""
        with self._lock:
            self._ends[job_id] = RunEnd(job_id, at, is_frozen=True)

    def list(self) -> list[RunEnd]:
        """List all ends so far."""
        with self._lock:
            return list(self._ends.values())

    def look(self, now: float) -> None:
        """Look once."""
        alive = self._runs.find()
        with self._lock:
            for job_id in set(self._alive) - set(alive):
                last_seen = self._alive.pop(job_id)
                self._ends.setdefault(job_id, RunEnd(job_id, last_seen))
            self._alive |= dict.fromkeys(alive, now)

    def _run(self) -> None:
        while not self._is_over.wait(_POLL_S):
            self.look(time.time())
