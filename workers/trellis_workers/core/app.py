"""The workers' Celery app: ``celery -A trellis_workers.core.app worker``."""

from celery import Celery
from celery.signals import after_setup_logger

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


after_setup_logger.connect(logs.set_up, weak=False)
