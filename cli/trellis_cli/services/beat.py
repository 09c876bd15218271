"""Celery beat: asks the workers every few seconds to look for work."""

from trellis_contracts.presence import BEAT_KEY

from trellis_cli.services.platform import python_command
from trellis_cli.services.presence import find_absence, find_presence
from trellis_cli.services.service import Service

_APP = "trellis_workers.core.beat_app"


class BeatService(Service):
    """The schedule. Two of them would only sweep twice as often."""

    name = "beat"

    def command(self) -> list[str]:
        return python_command(
            *("-m", "celery", "-A", _APP, "beat", "--loglevel", "INFO", "--pidfile="),
        )

    def probe(self) -> str | None:
        return find_presence(self.platform, BEAT_KEY, self.pid)

    def find_hang(self) -> str | None:
        return find_absence(self.probe())
