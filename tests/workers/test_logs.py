"""What workers and beat write to their logs."""

import io
import logging

from celery.signals import after_setup_logger
from trellis_workers.core import app  # noqa: F401 - connects the signal


def test_logs_of_workers_hold_no_passwords() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    handler = logging.StreamHandler(stream)
    root.addHandler(handler)

    after_setup_logger.send(sender=None, logger=root)
    logging.getLogger("kombu").error("cannot connect to %s", "redis://:hunter2@cache:6379/0")
    root.removeHandler(handler)

    assert stream.getvalue() == "cannot connect to redis://[secret]@cache:6379/0\n"
