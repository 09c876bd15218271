"""A data root of its own for every test, and services that stand in for the heavy ones."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from trellis_cli.services.service import Service
from trellis_testing.supervisors import make_supervisor, no_settings_from_outside
from trellis_tools.bench.light_platform import LightPlatform, light_platform

__all__ = ["make_supervisor", "no_settings_from_outside"]


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


@pytest.fixture(scope="session")
def platform() -> Iterator[LightPlatform]:
    """An API without workers: jobs stay queued, and data waits until a test carries out its tasks.

    All tests of the folder share it: each looks for what it has made itself.
    """
    with light_platform() as running:
        yield running


@pytest.fixture
def stubborn() -> type[Service]:
    """A service that does not want to end."""
    return StubbornService


@pytest.fixture
def broken() -> type[Service]:
    """A service that cannot start."""
    return BrokenService
