"""The kinds of faults, by name: what is killed, frozen, filled, locked or cut."""

import random
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import psutil
import redis
from trellis_cli.errors import Problem

from trellis_tools.chaos.disk import SmallDisk
from trellis_tools.chaos.fault import (
    Fault,
    MissedError,
    find_services,
    kill_services,
    wait_for_engine,
    wait_for_run,
    wait_for_server,
)
from trellis_tools.chaos.ground import RUNS_TO_API, TO_DATABASE, WORKERS_TO_RAY, Ground
from trellis_tools.chaos.invariants import (
    ENGINE_SETTLED_WITHIN_S,
    SUPERVISOR_MISSED_WITHIN_S,
    Finding,
    check_supervisor_is_missed,
)
from trellis_tools.chaos.plan import PlannedFault
from trellis_tools.chaos.processes import kill_all, list_tree, signal_all

#: The supervisor as a service of its own.
SUPERVISOR = "supervisor"
#: How often what a server has started is killed without it.
_CORES_ALONE = 0.5


class Kill(Fault):
    """SIGKILL of services with all their processes, at the same moment."""

    services: ClassVar[tuple[str, ...]]

    def choose(self, ground: Ground) -> Sequence[str]:  # noqa: ARG002 - some draw among those of the ground
        """Return the names of the services."""
        return self.services

    def find(self, ground: Ground) -> None:
        self._leaders = find_services(ground, self.choose(ground))

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found them
        kill_services(self._leaders)


class KillRay(Kill):
    """The head with everything that runs on it."""

    services = ("ray",)
    ends_runs = ends_endpoint = True


class KillRayLeader(KillRay):
    """The head's first process alone: what it started lives on and holds its ports."""

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found it
        kill_all([process for pid in self._leaders for process in list_tree(pid)[:1]])


class KillSeveral(Kill):
    """Two to five services together, drawn."""

    ends_runs = ends_endpoint = True

    def choose(self, ground: Ground) -> Sequence[str]:
        draw = random.Random(self.planned.choice_seed)  # noqa: S311 - to be repeated
        names = sorted(each.name for each in ground.supervisor.services)
        return draw.sample(names, draw.randint(2, len(names)))


class KillSupervisor(Fault):
    """The process that starts again what dies; or it together with a service (drawn), which then stays dead.

    The API has to say so, and `./init.sh` (or systemd) brings both back.
    """

    #: Not the API, which has to say it, and neither Ray nor Redis, without which others end.
    _ALSO = (None, "worker", "beat")
    lasts_s = (2.0, 10.0)

    def find(self, ground: Ground) -> None:
        draw = random.Random(self.planned.choice_seed)  # noqa: S311 - to be repeated
        also = draw.choice(self._ALSO)
        self._leaders = find_services(ground, [SUPERVISOR, *([also] if also else [])])
        others = [each.name for each in ground.supervisor.services if each.name != also]
        self._others = {name: ground.service(name).pid for name in others}

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found them
        self._struck = time.monotonic()
        # It first: otherwise it would have a moment to start the service again.
        for leader in self._leaders:
            kill_services([leader])

    def check(self, ground: Ground) -> list[Finding]:
        health = _ask_supervisor(ground)
        while health != "down" and time.monotonic() < self._struck + SUPERVISOR_MISSED_WITHIN_S:
            time.sleep(1.0)
            health = _ask_supervisor(ground)
        now = {name: ground.service(name).pid for name in self._others}
        return check_supervisor_is_missed(health, self._others, now)

    def release(self, ground: Ground) -> None:
        ground.start()


def _ask_supervisor(ground: Ground) -> str:
    """Ask the API how the supervisor is; or return why it doesn't tell."""
    try:
        told = ground.client.get("/monitoring/dashboard")["components"]
    except Problem as problem:
        return problem.message
    return next(str(each["health"]) for each in told if each["name"] == SUPERVISOR)


class KillRun(Fault):
    """The process that supervises a run."""

    ends_runs = True

    def find(self, ground: Ground) -> None:
        _, self._process = wait_for_run(ground)

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found it
        kill_all([self._process])


class KillEngine(Fault):
    """What a run's supervising process has started: subreaper, engine and helpers."""

    ends_runs = True

    def find(self, ground: Ground) -> None:
        self._processes = wait_for_engine(ground)

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found them
        kill_all(self._processes)


class Freeze(Fault):
    """SIGSTOP of a service with all its processes, then SIGCONT."""

    service: ClassVar[str]
    lasts_s = (2.0, 20.0)

    def __init__(self, planned: PlannedFault) -> None:
        super().__init__(planned)
        self._frozen: list[psutil.Process] = []

    def choose(self, ground: Ground) -> list[psutil.Process]:
        """Choose the processes to freeze."""
        return list_tree(ground.service(self.service).pid)

    def find(self, ground: Ground) -> None:
        self._frozen = self.choose(ground)
        if not self._frozen:
            raise MissedError(f"{self.service}: not running")

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found them
        signal_all(self._frozen, signal.SIGSTOP)

    def release(self, ground: Ground) -> None:  # noqa: ARG002 - it knows what it froze
        signal_all(self._frozen, signal.SIGCONT)


class FreezeRay(Freeze):
    """The head with everything that runs on it; it forgives no more."""

    service = "ray"
    lasts_s = (1.0, 5.0)
    ends_runs = ends_endpoint = True


class FreezeRun(Freeze):
    """A run's supervising process, for less than what counts as frozen."""

    lasts_s = (2.0, 30.0)

    def choose(self, ground: Ground) -> list[psutil.Process]:
        return [wait_for_run(ground)[1]]


class FreezeEngine(Freeze):
    """What a run's supervising process has started."""

    lasts_s = (2.0, 20.0)

    def choose(self, ground: Ground) -> list[psutil.Process]:
        return wait_for_engine(ground)


class KillServer(Fault):
    """The server of the endpoint's engine with all that it started, or only what it started (drawn)."""

    ends_endpoint = True
    endpoint_settled_within_s = ENGINE_SETTLED_WITHIN_S

    def find(self, ground: Ground) -> None:
        self._server, *self._cores = wait_for_server(ground)

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found them
        server, cores = self._server, self._cores
        draw = random.Random(self.planned.choice_seed)  # noqa: S311 - to be repeated
        kill_all(cores if cores and draw.random() < _CORES_ALONE else [server, *cores])


class FreezeServer(Freeze):
    """The server of the endpoint's engine with all that it started, for less than it may be silent."""

    lasts_s = (2.0, 40.0)
    ends_endpoint = True

    def choose(self, ground: Ground) -> list[psutil.Process]:
        return wait_for_server(ground)


class FreezeRunForGood(Fault):
    """A run's supervising process, until the platform ends it."""

    ends_runs = True

    def find(self, ground: Ground) -> None:
        self.frozen_job, self._process = wait_for_run(ground)

    def strike(self, ground: Ground) -> None:  # noqa: ARG002 - it has found it
        signal_all([self._process], signal.SIGSTOP)


class Restart(Fault):
    """`./init.sh down`, and `./init.sh` again."""

    ends_runs = ends_endpoint = True
    lasts_s = (0.0, 5.0)

    def strike(self, ground: Ground) -> None:
        ground.supervisor.down()

    def release(self, ground: Ground) -> None:
        ground.start()


class FillDisk(Fault):
    """No byte is left on the data root's file system."""

    ends_runs = ends_endpoint = True
    lasts_s = (2.0, 20.0)

    def strike(self, ground: Ground) -> None:
        _require_disk(ground).fill()

    def release(self, ground: Ground) -> None:
        _require_disk(ground).clear()


def _require_disk(ground: Ground) -> SmallDisk:
    if isinstance(ground.disk, str):
        raise MissedError(ground.disk)
    return ground.disk


class LockDatabase(Fault):
    """Somebody holds SQLite's write lock."""

    lasts_s = (2.0, 30.0)

    def strike(self, ground: Ground) -> None:
        path = ground.data_root / "trellis.db"
        self._connection = sqlite3.connect(path, timeout=10.0, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")

    def release(self, ground: Ground) -> None:  # noqa: ARG002 - it holds its own connection
        self._connection.execute("ROLLBACK")
        self._connection.close()


class Cut(Fault):
    """Nothing passes between two parts; open connections are reset."""

    link: ClassVar[str]
    lasts_s = (2.0, 20.0)

    def strike(self, ground: Ground) -> None:
        ground.links[self.link].cut()

    def release(self, ground: Ground) -> None:
        ground.links[self.link].mend()


class DropBrokerConnections(Fault):
    """Redis closes every connection, several times."""

    lasts_s = (0.0, 3.0)

    def strike(self, ground: Ground) -> None:
        self._drop(ground)

    def release(self, ground: Ground) -> None:
        self._drop(ground)

    def _drop(self, ground: Ground) -> None:
        with redis.Redis.from_url(ground.supervisor.platform.redis_url, socket_timeout=5.0) as client:
            client.client_kill_filter(_type="normal", skipme=True)
            client.client_kill_filter(_type="pubsub", skipme=True)


def _named(base: type[Fault], **attributes: object) -> type[Fault]:
    return type(base.__name__, (base,), attributes)


#: Of the endpoint's engine.
KILL_SERVER, FREEZE_SERVER = "kill-endpoint-engine", "freeze-endpoint-engine"
#: What may strike, by name. Those of a platform that is not on SQLite, or is, are left out by `list_kinds`.
FAULTS: Mapping[str, Callable[[PlannedFault], Fault]] = {
    "kill-api": _named(Kill, services=("api",)),
    "kill-worker": _named(Kill, services=("worker",)),
    "kill-beat": _named(Kill, services=("beat",)),
    "kill-redis": _named(Kill, services=("redis",)),
    "kill-worker-and-beat": _named(Kill, services=("worker", "beat")),
    "kill-ray": KillRay,
    "kill-ray-leader": KillRayLeader,
    "kill-several": KillSeveral,
    "kill-supervisor": KillSupervisor,
    "kill-run": KillRun,
    "kill-engine": KillEngine,
    KILL_SERVER: KillServer,
    "freeze-api": _named(Freeze, service="api"),
    "freeze-worker": _named(Freeze, service="worker"),
    "freeze-beat": _named(Freeze, service="beat"),
    "freeze-redis": _named(Freeze, service="redis"),
    "freeze-ray": FreezeRay,
    "freeze-supervisor": _named(Freeze, service=SUPERVISOR),
    "freeze-run": FreezeRun,
    "freeze-engine": FreezeEngine,
    FREEZE_SERVER: FreezeServer,
    "freeze-run-for-good": FreezeRunForGood,
    "restart": Restart,
    "fill-disk": FillDisk,
    "lock-database": LockDatabase,
    "cut-runs-from-api": _named(Cut, link=RUNS_TO_API),
    "cut-workers-from-ray": _named(Cut, link=WORKERS_TO_RAY),
    "cut-database": _named(Cut, link=TO_DATABASE),
    "drop-broker-connections": DropBrokerConnections,
}


def list_kinds(
    *, is_on_sqlite: bool, disk: SmallDisk | str, has_endpoint: bool
) -> tuple[list[str], dict[str, str]]:
    """List the kinds of fault that can be injected here, and the excluded ones with the reason."""
    left_out = {}
    if isinstance(disk, str):
        left_out["fill-disk"] = disk
    if is_on_sqlite:
        left_out["cut-database"] = "SQLite has no connections"
    else:
        left_out["lock-database"] = "only SQLite has a database-wide lock"
    if not has_endpoint:
        left_out |= dict.fromkeys((KILL_SERVER, FREEZE_SERVER), "no endpoint is served")
    return [kind for kind in FAULTS if kind not in left_out], left_out
