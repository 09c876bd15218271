"""Standalone mode: events stay in the local spool; nothing is uploaded."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


class NoShipper:
    """In the place of ``Shipper``."""

    latest_step = 0

    def start(self) -> None:
        """Nothing is shipped."""

    def wake(self) -> None:
        """Nobody sleeps."""

    def is_full(self) -> bool:
        """Nothing waits to be sent, so no line is dropped."""
        return False

    def drain(self, _timeout_s: float) -> bool:
        """All has been sent that is to be."""
        return True


class NoHeartbeat:
    """In the place of ``HeartbeatSender``."""

    def start(self) -> None:
        """Nobody listens."""

    def stop(self) -> None:
        """Nothing beats."""


def leave_with_parent() -> None:
    """SIGTERM comes when the process that started this one dies: the run checkpoints and leaves."""
    parent_pid = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the kernel was told
        os.kill(os.getpid(), signal.SIGTERM)
