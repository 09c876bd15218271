"""A worker that Celery ends tells its long tasks, so that they wait for the next one."""

from collections.abc import Callable
from multiprocessing.sharedctypes import RawValue
from typing import Any

import pytest
from celery.signals import worker_shutting_down
from trellis_workers.core import leaving
from trellis_workers.transfers import run, tasks


def test_transfers_hear_that_their_worker_leaves(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    told: list[bool] = []
    monkeypatch.setattr(
        run, "run_waiting", lambda _settings, _database, is_leaving: told.append(is_leaving())
    )
    monkeypatch.setattr(leaving, "_leaving", RawValue("b", 0))

    tasks.run_transfers()
    worker_shutting_down.send(sender=None)
    tasks.run_transfers()

    assert told == [False, True]
