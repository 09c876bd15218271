"""Finds out, when a worker starts, whether code of rewards can be isolated on its machine."""

import logging
import socket
import sys
import threading
from typing import Any

from celery.signals import worker_ready
from sqlalchemy.exc import SQLAlchemyError
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.rewards.availability import probe_sandbox, record_probe

from trellis_workers.core.settings import get_settings

logger = logging.getLogger(__name__)


def install() -> None:
    """Probe in every worker that Celery starts from here on."""
    # A strong reference: Celery would forget the function otherwise.
    worker_ready.connect(_begin, weak=False)


def _begin(**_signal: Any) -> None:
    # On a thread: tasks do not wait for it.
    threading.Thread(target=probe, args=(get_settings(),), name="sandbox-probe", daemon=True).start()


def probe(settings: Settings) -> None:
    """Try the sandbox, and record what was found for the API."""
    problem = probe_sandbox(str(settings.job_python or sys.executable))
    # Of its own: what this process keeps would be inherited by the pool's later children.
    database = Database(settings)
    try:
        with database.write() as session:
            record_probe(session, hostname=socket.gethostname(), problem=problem)
    except SQLAlchemyError:  # the edge of a thread: rewards are then offered, and each run looks for itself
        logger.exception("could not record the sandbox status")
    finally:
        database.dispose()
    if problem is None:
        logger.info("the sandbox for reward code works on this machine")
    else:
        logger.warning("the sandbox for reward code does not work on this machine: %s", problem)
