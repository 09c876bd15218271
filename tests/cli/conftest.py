"""A data root of its own for every test, and services that stand in for the heavy ones."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trellis_cli.bench.light_platform import LightPlatform, light_platform
from trellis_cli.services import supervisor as supervising
from trellis_cli.services.platform import Platform, load_platform
from trellis_cli.services.ports import pick_free
from trellis_cli.services.redis import RedisService
from trellis_cli.services.service import Service
from trellis_cli.services.supervisor import Supervisor


class StubbornService(Service):
    """Starts a child in a session of its own and ignores the request to end, as Ray's processes may."""

    name = "stubborn"
    start_timeout_s = 10.0
    grace_s = 0.3

    PROGRAM = """
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(300)
"""

    @property
    def child_file(self) -> Path:
        return self.platform.layout.run_dir / "child"

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.PROGRAM, str(self.child_file)]

    def probe(self) -> str | None:
        has_child = self.child_file.exists() and self.child_file.read_text().isdigit()
        return None if has_child else "has no child yet"


class BrokenService(Service):
    """Ends at once, with a word about why."""

    name = "broken"

    def command(self) -> list[str]:
        return [sys.executable, "-c", "import sys; sys.exit('the cellar is flooded')"]

    def probe(self) -> str | None:
        return "does not answer"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRELLIS_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def platform() -> Iterator[LightPlatform]:
    """An API without workers: jobs stay queued, and data waits until a test carries out its tasks.

    All tests of the folder share it: each looks for what it has made itself.
    """
    with light_platform() as running:
        yield running


@pytest.fixture
def make_supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Supervisor]]:
    """Supervisors of light services, each in the data root that it is given; all are ended in the end."""
    monkeypatch.setattr(supervising, "migrate", lambda platform: None)
    made: list[Supervisor] = []

    def make(data_root: Path, *services: type[Service], port: int | None = None) -> Supervisor:
        monkeypatch.setenv("TRELLIS_DATA_ROOT", str(data_root))
        platform: Platform = load_platform(port or pick_free(1)[0])
        supervisor = Supervisor(platform, lambda line: None)
        supervisor.services = [service(platform) for service in services or (RedisService,)]
        made.append(supervisor)
        return supervisor

    yield make
    for supervisor in made:
        supervisor.down()


@pytest.fixture
def stubborn() -> type[Service]:
    """A service that does not want to end."""
    return StubbornService


@pytest.fixture
def broken() -> type[Service]:
    """A service that cannot start."""
    return BrokenService
