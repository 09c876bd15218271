"""Keep what only watches a run from ending it."""

import logging
from collections.abc import Callable
from typing import TypeVar

logger = logging.getLogger(__name__)
Found = TypeVar("Found")


def watch(what: str, measure: Callable[[], Found], otherwise: Found) -> Found:
    """Return what ``measure`` finds; if it raises, log the traceback and return ``otherwise``."""
    try:
        return measure()
    except Exception:  # an edge: charts and alarms are not worth a run
        logger.exception("could not measure %s; training continues", what)
        return otherwise
