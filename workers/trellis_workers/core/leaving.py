"""Lets long tasks know that their worker is asked to leave, so that they wait for the next one at once.

Celery tells it to the worker's first process only, and lets it wait for tasks that run; work on data
and transfers may run for hours and lose nothing, or little, when they go on later.
"""

from multiprocessing.sharedctypes import RawValue
from typing import Any

from celery.signals import worker_shutting_down

#: Memory that the pool's processes share with the first one. No lock: a killed process cannot keep it.
_leaving = RawValue("b", 0)


def install() -> None:
    """Watch in every worker that Celery starts from here on."""
    # A strong reference: Celery would forget the function otherwise.
    worker_shutting_down.connect(_note, weak=False)


def is_leaving() -> bool:
    """Tell whether the worker of this process was asked to leave."""
    return bool(_leaving.value)


def _note(**_signal: Any) -> None:
    _leaving.value = 1
