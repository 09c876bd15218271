"""Terminate an engine in steps: a stop request, then SIGTERM, then SIGKILL."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from trellis_train.supervise.child import EngineProcess
from trellis_train.supervise.failure_causes import EndedFor

#: After SIGTERM. Ray kills the entrypoint 20 s after its own SIGTERM (the workers set that).
TERMINATED_GRACE_S = 8.0
#: After the platform has disowned the attempt: time for one last checkpoint.
DISOWNED_GRACE_S = 60.0
KILL_AFTER_S = 4.0


@dataclass
class Ending:
    """When and why the engine has to go. Fed by threads and signal handlers, advanced by the main loop."""

    is_terminated: bool = False
    is_disowned: bool = False
    _is_urgent: bool = False
    _asked_at: float | None = None
    _termed_at: float | None = None
    _was_stop_ours: bool = False

    def note_termination(self) -> None:
        """Note that SIGTERM came: there is little time, and none after a second one."""
        self._is_urgent = self.is_terminated
        self.is_terminated = True

    def note_refusal(self, _reason: str) -> None:
        """Note that the platform no longer knows this attempt, so nobody waits for its results."""
        self.is_disowned = True

    def explain(self, *, is_stop_requested: bool) -> EndedFor | None:
        """Explain why the engine was ended, if it was; the signal may have ended it before ``advance``."""
        if self.is_disowned:
            return "disowned"
        if not self.is_terminated:
            return None
        return "stop" if is_stop_requested and not self._was_stop_ours else "signal"

    def advance(self, engine: EngineProcess, *, request_stop: Callable[[], bool]) -> None:
        """Take the next step when it is due."""
        if not (self.is_terminated or self.is_disowned):
            return
        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
            # A stop file that we had to create ourselves was not asked for by the platform.
            self._was_stop_ours = request_stop()
        grace_s = TERMINATED_GRACE_S if self.is_terminated else DISOWNED_GRACE_S
        if self._termed_at is None and (self._is_urgent or now - self._asked_at >= grace_s):
            self._termed_at = now
            engine.terminate()
        elif self._termed_at is not None and now - self._termed_at >= KILL_AFTER_S:
            engine.kill()
