"""Loads in advance what the first preview or launch needs: most of a second that no request waits for."""

import logging
import threading

from trellis_recipes.schema import EngineNotInstalled
from trellis_recipes.schemas import load_schemas

log = logging.getLogger(__name__)


def warm_up_later() -> threading.Thread:
    """Begin on a thread of its own: the API answers meanwhile. What fails is tried again when needed."""
    thread = threading.Thread(target=_warm_up, name="warm-up", daemon=True)
    thread.start()
    return thread


def _warm_up() -> None:
    try:
        load_schemas()
    except EngineNotInstalled as error:
        log.warning("no job can be composed: %s", error)
    except Exception:  # the edge of a thread: the first request meets the same error and reports it
        log.exception("the engines' configuration could not be read in advance")
