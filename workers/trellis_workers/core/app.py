"""The workers' Celery app: ``celery -A trellis_workers.core.app worker``."""

import gc
from typing import Any

import trellis_api.wiring  # noqa: F401
from celery import Celery
from celery.signals import after_setup_logger, celeryd_after_setup

from trellis_workers.core import leaving, logs
from trellis_workers.core.configuration import build_configuration

app = Celery(
    "trellis",
    include=[
        "trellis_workers.due.tasks",
        "trellis_workers.jobs.tasks",
        "trellis_workers.evaluations.tasks",
        "trellis_workers.endpoints.tasks",
        "trellis_workers.fine_tuning.tasks",
        "trellis_workers.machines.tasks",
        "trellis_workers.models.tasks",
        "trellis_workers.rewards.tasks",
        "trellis_workers.data.tasks",
        "trellis_workers.environments.tasks",
        "trellis_workers.transfers.tasks",
        "trellis_workers.workflows.tasks",
    ],
)
app.add_defaults(build_configuration)
leaving.install()


def _share_memory(**_signal: Any) -> None:
    """Keep the garbage collector from what is loaded: it writes to it, and each process would copy it."""
    gc.freeze()


after_setup_logger.connect(logs.set_up, weak=False)
# The last moment before the pool forks.
celeryd_after_setup.connect(_share_memory, weak=False)
