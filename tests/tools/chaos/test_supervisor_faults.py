"""The supervisor is killed: the services go on, the API says so, and a start brings it back."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trellis_api.monitoring.measurements import probe_supervisor
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.watcher import WatcherService
from trellis_contracts.supervision import LIFETIME_S, SUPERVISION_FILE, Supervision
from trellis_testing.supervisors import make_supervisor, no_settings_from_outside
from trellis_tools.chaos.faults import FAULTS, KillSupervisor
from trellis_tools.chaos.ground import Ground
from trellis_tools.chaos.invariants import check_supervisor_is_missed
from trellis_tools.chaos.plan import PlannedFault

__all__ = ["make_supervisor", "no_settings_from_outside"]
MakeSupervisor = Callable[..., Supervisor]
#: Watches Redis alone, which is the first of the services.
_WATCH_REDIS = """
import sys
from trellis_cli.services.platform import load_platform
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.watch import Watch
supervisor = Supervisor(load_platform(int(sys.argv[1])), print)
del supervisor.services[1:]
Watch(supervisor).run()
"""


class RedisWatcher(WatcherService):
    """The supervisor's own process, on a platform that has only Redis."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", _WATCH_REDIS, str(self.platform.settings.port)]


@dataclass
class Client:
    """The overview of an API on this data root, as far as it concerns the supervisor."""

    supervisor: Supervisor

    def get(self, path: str) -> dict[str, Any]:
        assert path == "/monitoring/dashboard"
        measured = probe_supervisor(self.supervisor.platform.settings)
        return {"components": [{"name": "supervisor", "health": measured.health}]}


@pytest.fixture
def ground(make_supervisor: MakeSupervisor, tmp_path: Path) -> Ground:
    """A platform of Redis and a supervisor."""
    supervisor = make_supervisor(tmp_path)
    supervisor.watcher = RedisWatcher(supervisor.platform)
    supervisor.up()
    supervisor.watch()
    client: Any = Client(supervisor)
    return Ground(supervisor, client, tmp_path, {}, "no disk")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> KillSupervisor:
    """The fault that kills the supervisor without a service."""
    monkeypatch.setattr(KillSupervisor, "_ALSO", (None,))
    fault = FAULTS["kill-supervisor"](PlannedFault(1, "kill-supervisor", 0.0, 0.0, 1))
    assert isinstance(fault, KillSupervisor)
    return fault


def test_a_killed_supervisor_is_missed_and_comes_back_with_a_start(
    ground: Ground, alone: KillSupervisor
) -> None:
    killed, broker = ground.service("supervisor").pid, ground.service("redis").pid

    alone.find(ground)
    alone.strike(ground)
    is_dead = ground.service("supervisor").pid is None
    _let_its_word_grow_old(ground)
    findings = alone.check(ground)
    alone.release(ground)

    assert killed is not None
    assert is_dead
    assert findings == []
    assert ground.service("redis").pid == broker
    assert ground.service("supervisor").pid not in (None, killed)
    assert ground.find_problems() == []


def test_a_supervisor_that_nobody_misses_is_found(
    ground: Ground, alone: KillSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis_tools.chaos.faults.SUPERVISOR_MISSED_WITHIN_S", 0.0)
    alone.find(ground)
    alone.strike(ground)

    (finding,) = alone.check(ground)

    assert "the supervisor is down" in finding.expected
    assert finding.found == "ok"


def test_services_that_do_not_outlive_their_supervisor_are_found() -> None:
    before = {"api": 1, "redis": 2, "worker": 3}

    findings = check_supervisor_is_missed("down", before, {"api": 1, "redis": None, "worker": 4})

    assert [(each.expected, each.found) for each in findings] == [
        ("redis goes on as 2", "not running"),
        ("worker goes on as 3", "4"),
    ]
    assert check_supervisor_is_missed("down", before, before) == []


def _let_its_word_grow_old(ground: Ground) -> None:
    """Stand in for the half minute after which a supervisor that says nothing counts as dead."""
    path = ground.data_root / SUPERVISION_FILE
    told = Supervision.model_validate_json(path.read_bytes())
    told.renewed_at = time.time() - LIFETIME_S - 1
    path.write_text(told.model_dump_json())
