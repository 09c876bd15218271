"""The supervisor as a process of its own, that `trellis up` starts and `trellis down` ends first."""

import os
import time

from trellis_contracts.supervision import LIFETIME_S, SUPERVISION_FILE, Supervision

from trellis_cli.services.platform import python_command
from trellis_cli.services.process import MARK
from trellis_cli.services.service import Service


class WatcherService(Service):
    """Starts the other services again when they die."""

    name = "supervisor"
    is_told_addresses = False
    #: It may be ending what a dead service left, which has its time.
    grace_s = 45.0
    start_timeout_s = 120.0

    def command(self) -> list[str]:
        return python_command("-m", "trellis_cli", "supervise")

    def environment(self) -> dict[str, str]:
        """Return the caller's environment; with addresses set, broker and cluster would seem external."""
        platform = self.platform
        return {
            **os.environ,
            MARK: platform.mark(self.name),
            "TRELLIS_DATA_ROOT": str(platform.settings.data_root),
            "TRELLIS_PORT": str(platform.settings.port),
            "PYTHONUNBUFFERED": "1",
        }

    def probe(self) -> str | None:
        told = self._read()
        if told is None or time.time() - told.renewed_at > LIFETIME_S:
            return "does not watch the services"
        given_up = [each.name for each in told.services if each.state == "given_up"]
        return f"has given up on {', '.join(given_up)}: see its log" if given_up else None

    def describe(self) -> str:
        told = self._read()
        restarts = {each.name: each.restarts for each in told.services if each.restarts} if told else {}
        if not restarts:
            return "starts again what dies"
        return "started again: " + ", ".join(f"{name} {count}x" for name, count in restarts.items())

    def _read(self) -> Supervision | None:
        try:
            path = self.platform.layout.data_root / SUPERVISION_FILE
            return Supervision.model_validate_json(path.read_bytes())
        except (OSError, ValueError):
            return None
