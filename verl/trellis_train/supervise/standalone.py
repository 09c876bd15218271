"""Standalone mode: events stay in the local spool; nothing is uploaded."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


class NoShipper:
    """In the place of ``Shipper``."""

    latest_step = 0

    def start(self) -> None:
        """Do nothing: nothing is shipped."""

    def wake(self) -> None:
        """Do nothing: no thread is asleep."""

    def is_full(self) -> bool:
        """Return False: nothing waits to be sent, so no line is dropped."""
        return False

    def drain(self, _timeout_s: float) -> bool:
        """Return True: everything that should be sent has been sent."""
        return True


class NoHeartbeat:
    """In the place of ``HeartbeatSender``."""

    def start(self) -> None:
        """Do nothing: nobody listens."""

    def stop(self) -> None:
        """Do nothing: there is no heartbeat."""


def leave_with_parent() -> None:
    """Have SIGTERM sent when the parent process dies: the run then checkpoints and leaves."""
    parent_pid = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the kernel was told
        os.kill(os.getpid(), signal.SIGTERM)
