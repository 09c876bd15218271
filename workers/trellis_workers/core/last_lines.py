"""The end of a log, to say why a process has left: logs may be long, and hold secrets."""

import os
from pathlib import Path

from trellis_api.core.redaction import redact

_MOST_BYTES = 64 * 1024


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last lines that are not blank, with secrets masked; none if there is no log."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - _MOST_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    if size > _MOST_BYTES:
        # Of half a line nobody can tell whether it is the end of a secret.
        del lines[:1]
    return redact("\n".join(line.rstrip() for line in lines if line.strip())).splitlines()[-count:]
