"""What the logs of workers and beat leave out."""

import logging
from typing import Any

from trellis_api.core.redaction import install_log_redaction


def set_up(**_signal: Any) -> None:
    """Mask secrets, and drop what Celery says twice of every sweep, every other second."""
    install_log_redaction()
    for name in ("celery.app.trace", "celery.worker.strategy", "celery.beat"):
        logging.getLogger(name).setLevel(logging.WARNING)
