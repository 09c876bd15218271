"""How a run leaves when it is asked to."""

from pathlib import Path

from trellis_train.hooks.event_spool import is_stop_requested


class StoppedByRequest(Exception):
    """The platform asked the run to leave before its first step: there is nothing to checkpoint."""


def leave_if_asked(attempt_dir: str | Path) -> None:
    """Raise ``StoppedByRequest`` where the platform asked this attempt to leave."""
    if is_stop_requested(attempt_dir):
        raise StoppedByRequest
