"""Embedded services of their own for a test: the product's, in a folder of their own."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_cli.services.layout import Layout
from trellis_cli.services.platform import Platform
from trellis_cli.services.process import ProcessIdentity, end, start_detached
from trellis_cli.services.ray import RayService
from trellis_cli.services.service import Service

from trellis_testing.waiting import wait_until


@contextlib.contextmanager
def running_ray_head(slots: int = 1) -> Iterator[dict[str, str]]:
    """Start the head as ``trellis up`` does; yields what a driver's environment needs to join it."""
    with local_platform(slots) as platform, running_service(RayService(platform)):
        yield driver_environment(platform)


def driver_environment(platform: Platform) -> dict[str, str]:
    """Return the variables with which a driver joins the platform's cluster."""
    environment = platform.environment(RayService.name)
    joining = {name: value for name, value in environment.items() if name.startswith("RAY_")}
    return {**joining, "RAY_ADDRESS": platform.ray_address}


@contextlib.contextmanager
def local_platform(slots: int = 1) -> Iterator[Platform]:
    """Create a platform with embedded services and its own data root, with nothing running yet."""
    # A short name: Ray's sockets have little room for theirs.
    folder = Path(tempfile.mkdtemp(prefix="trray-", dir="/tmp"))
    settings = Settings(data_root=folder, platform="cpu", slots=slots, redis_url=None, ray_address=None)
    layout = Layout(folder)
    layout.prepare()
    try:
        yield Platform(settings, layout, layout.read_state(), None, None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_service(service: Service) -> Iterator[ProcessIdentity]:
    """Start a service as ``trellis up`` does, and end it; yields its first process."""
    platform = service.platform
    layout, folder = platform.layout, platform.settings.data_root
    service.settle()
    service.prepare()
    log = layout.log_path(service.name)
    environment = platform.environment(service.name)
    leader = start_detached(service.command(), env=environment, log_path=log, cwd=folder)
    try:
        wait_until(
            lambda: service.probe() is None or not leader.is_alive,
            service.start_timeout_s,
            f"{service.name} answers",
        )
        assert leader.is_alive, log.read_text()[-3000:]
        yield leader
    finally:
        end(leader, platform.mark(service.name), grace_s=service.grace_s, last=leader, folder=folder)
