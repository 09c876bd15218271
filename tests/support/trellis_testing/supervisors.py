"""Fixtures of tests that start services: settings and data roots of their own."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trellis_cli.services import supervisor as supervising
from trellis_cli.services.platform import Platform, load_platform
from trellis_cli.services.ports import pick_free
from trellis_cli.services.redis import RedisService
from trellis_cli.services.service import Service
from trellis_cli.services.supervisor import Supervisor


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("TRELLIS_")]:
        monkeypatch.delenv(name)


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
