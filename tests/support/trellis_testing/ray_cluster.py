"""A Ray head of its own for a test session: the product's, in a folder of its own."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_cli.services.layout import Layout
from trellis_cli.services.platform import Platform
from trellis_cli.services.process import end, start_detached
from trellis_cli.services.ray import RayService

from trellis_testing.waiting import wait_until


@contextlib.contextmanager
def running_ray_head(slots: int = 1) -> Iterator[dict[str, str]]:
    """Start the head as ``trellis up`` does; yields what a driver's environment needs to join it."""
    # A short name: Ray's sockets have little room for theirs.
    folder = Path(tempfile.mkdtemp(prefix="trray-", dir="/tmp"))
    settings = Settings(data_root=folder, platform="cpu", slots=slots, redis_url=None, ray_address=None)
    layout = Layout(folder)
    layout.prepare()
    platform = Platform(settings, layout, layout.read_state(), None, None)
    service = RayService(platform)
    service.settle()
    service.prepare()
    environment = platform.environment(service.name)
    log = layout.log_path(service.name)
    head = start_detached(service.command(), env=environment, log_path=log, cwd=folder)
    try:
        wait_until(
            lambda: service.probe() is None or not head.is_alive, service.start_timeout_s, "Ray answers"
        )
        assert head.is_alive, log.read_text()[-3000:]
        joining = {name: value for name, value in environment.items() if name.startswith("RAY_")}
        yield {**joining, "RAY_ADDRESS": platform.ray_address}
    finally:
        end(head, platform.mark(service.name), grace_s=service.grace_s, last=head, folder=folder)
        shutil.rmtree(folder, ignore_errors=True)
