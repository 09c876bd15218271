"""What every fault has: it finds what to break, strikes, lasts and is released; and how runs are found."""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

import psutil
from trellis_cli.errors import Problem

from trellis_tools.chaos.ground import Ground
from trellis_tools.chaos.invariants import ENDPOINT_SETTLED_WITHIN_S, Finding
from trellis_tools.chaos.plan import PlannedFault
from trellis_tools.chaos.processes import kill_all, list_tree

Found = TypeVar("Found")
#: How long a run to break is waited for, and an engine that serves: one that failed is started again by a
#: request after a minute at the earliest.
_RUN_TIMEOUT_S = 60.0
_SERVER_TIMEOUT_S = 180.0
_SERVER = "trellis_train.serve"
_POLL_S = 0.1


class MissedError(Exception):
    """There was nothing to break."""


class Fault(ABC):
    """One kind of fault. An object strikes once."""

    #: Whether runs may end badly of it.
    ends_runs: ClassVar[bool] = False
    #: Whether the engine of the endpoint may end of it.
    ends_endpoint: ClassVar[bool] = False
    #: Within which the platform knows afterwards how the endpoint stands, in seconds.
    endpoint_settled_within_s: ClassVar[float] = ENDPOINT_SETTLED_WITHIN_S
    #: Seconds between strike and release: shortest and longest.
    lasts_s: ClassVar[tuple[float, float]] = (0.0, 0.0)

    def __init__(self, planned: PlannedFault) -> None:
        self.planned = planned
        #: A job whose run stands still until the platform ends it.
        self.frozen_job: str | None = None

    @property
    def length_s(self) -> float:
        """How long this one lasts."""
        shortest, longest = self.lasts_s
        return shortest + (longest - shortest) * self.planned.length

    def find(self, ground: Ground) -> None:  # noqa: B027 - a disk or a link is always there
        """Wait for what shall be broken; ``MissedError`` where it is not there. Nothing is broken yet."""

    @abstractmethod
    def strike(self, ground: Ground) -> None:
        """Break what was found."""

    def check(self, ground: Ground) -> list[Finding]:  # noqa: ARG002 - most have nothing to show meanwhile
        """Check what must hold although this is broken, before it is released."""
        return []

    def release(self, ground: Ground) -> None:  # noqa: B027 - what is killed is not given back
        """Take the fault away, once it has lasted."""


def find_services(ground: Ground, names: Sequence[str]) -> list[int]:
    """Return the pids of the main processes of these services, as far as they are running."""
    leaders = [pid for name in names if (pid := ground.service(name).pid)]
    if not leaders:
        raise MissedError(f"{', '.join(names)}: not running")
    return leaders


def kill_services(leaders: Sequence[int]) -> None:
    """Kill services with all their processes (SIGKILL)."""
    if left := kill_all([each for pid in leaders for each in list_tree(pid)]):
        raise Problem(f"could not kill: {left}")


def wait_for_run(ground: Ground) -> tuple[str, psutil.Process]:
    """Wait until a job has a supervising process; return both."""
    return _wait(lambda: next(iter(ground.find_trainings().items()), None), "no run began")


def wait_for_engine(ground: Ground) -> list[psutil.Process]:
    """Wait until a run's supervising process has started child processes, and return them."""
    return _wait(
        lambda: [each for run in ground.find_trainings().values() for each in list_tree(run.pid)[1:]],
        "no engine began",
    )


def wait_for_server(ground: Ground) -> list[psutil.Process]:
    """Wait until the endpoint's engine has a server; return its process and its children."""
    return _wait(lambda: _find_server(ground), "no engine served", _SERVER_TIMEOUT_S)


def _find_server(ground: Ground) -> list[psutil.Process]:
    run = ground.find_serving()
    for process in list_tree(run.pid)[1:] if run else ():
        with contextlib.suppress(psutil.NoSuchProcess):
            if _SERVER in process.cmdline():
                return list_tree(process.pid)
    return []


def _wait(look: Callable[[], Found | None], problem: str, timeout_s: float = _RUN_TIMEOUT_S) -> Found:
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise MissedError(f"{problem} within {timeout_s:.0f} s")
        time.sleep(_POLL_S)
    return found
