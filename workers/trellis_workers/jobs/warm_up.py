"""Loads in advance what a worker process needs for its first launch: two seconds that no job waits for."""

import logging
import threading
from typing import Any

from celery.signals import worker_process_init

logger = logging.getLogger(__name__)


def install() -> None:
    """Warm up every worker process that Celery forks from here on."""
    # A strong reference: Celery would forget the function otherwise.
    worker_process_init.connect(_begin, weak=False)


def _begin(**_signal: Any) -> None:
    # On a thread: Celery kills a process that takes long to come up.
    threading.Thread(target=warm_up, name="warm-up", daemon=True).start()


def warm_up() -> None:
    """Import Ray's client and read the engines' configuration schemas."""
    import ray.job_submission  # noqa: F401
    from trellis_recipes.schemas import load_schemas

    load_schemas()
    logger.info("warmed up")
