"""Loads what tasks need for their first launch in the worker's first process, before its pool is forked.

No job waits for it then, and the processes of the pool share the memory: seven that each imported Ray's
client took 0.8 GB more.
"""

import gc
import logging
from typing import Any

from celery.signals import worker_init

logger = logging.getLogger(__name__)


def install() -> None:
    """Warm up every worker that Celery starts from here on."""
    # A strong reference: Celery would forget the function otherwise.
    worker_init.connect(warm_up, weak=False)


def warm_up(**_signal: Any) -> None:
    """Import Ray's client, read the engines' configuration schemas, and map the tables."""
    import ray.job_submission  # noqa: F401
    from sqlalchemy.orm import configure_mappers
    from trellis_recipes.schemas import load_schemas

    # Else each process maps them at its first query, which takes it 6 MB of its own.
    configure_mappers()
    load_schemas()
    # The garbage collector writes to each object that it visits, which copies memory that a fork shares.
    gc.collect()
    gc.freeze()
    logger.info("warmed up")
