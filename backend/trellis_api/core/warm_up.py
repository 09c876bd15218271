"""Does in advance what the first request that needs it would wait for."""

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


def warm_up_later(*works: Callable[[], None]) -> threading.Thread:
    """Begin on a thread of its own: the API answers meanwhile. What fails is tried again when needed."""
    thread = threading.Thread(target=_carry_out, args=(works,), name="warm-up", daemon=True)
    thread.start()
    return thread


def _carry_out(works: tuple[Callable[[], None], ...]) -> None:
    for work in works:
        try:
            work()
        except Exception:  # the edge of a thread: the first request meets the same error and reports it
            log.exception("%s could not be done in advance", work.__name__)
