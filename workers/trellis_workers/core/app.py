"""The Celery app: ``celery -A trellis_workers.core.app worker`` and ``... beat``.

No task waits for a training run, and no task is needed to arrive: beat repeats the
sweeps, which find in the database whatever a lost message was about.
"""

import logging
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger
from trellis_api.core.redaction import install_log_redaction
from trellis_contracts import tasks

from trellis_workers.core import presence
from trellis_workers.core.transaction import get_settings

#: A task that Redis handed out and that nobody finished comes back after this time.
_VISIBILITY_TIMEOUT_S = 3_600
_MODELS_SWEEP_INTERVAL_S = 30.0
_PURGE_INTERVAL_S = 30.0
_INSTALL_INTERVAL_S = 5.0
_ENDPOINTS_INTERVAL_S = 5.0
_REPORTS_INTERVAL_S = 5.0
_DRY_RUNS_SWEEP_INTERVAL_S = 5.0
_DATA_SWEEP_INTERVAL_S = 5.0
_ENVIRONMENTS_INTERVAL_S = 3.0
_TRANSFERS_INTERVAL_S = 5.0
_TIDY_INTERVAL_S = 600.0


def build_configuration() -> dict[str, Any]:
    """Celery's settings, made of the platform's (read when first needed, not at import)."""
    settings = get_settings()
    if not settings.redis_url:
        raise RuntimeError("TRELLIS_REDIS_URL is not set: the workers have no broker.")
    # The first moment at which the broker is known; Celery's start-up signals come later.
    presence.install(settings.redis_url)
    run_dir = settings.data_root / "run"
    run_dir.mkdir(parents=True, exist_ok=True)
    interval_s = settings.sweep_interval_s
    return {
        "broker_url": settings.redis_url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": 5,
        "broker_transport_options": {
            "visibility_timeout": _VISIBILITY_TIMEOUT_S,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": 20,
        },
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_hijack_root_logger": True,
        "beat_schedule_filename": str(run_dir / "celerybeat-schedule"),
        "beat_max_loop_interval": interval_s,
        "beat_schedule": {
            "launch": _every(interval_s, tasks.LAUNCH_QUEUED),
            "reconcile": _every(interval_s, tasks.RECONCILE),
            "finish-exports": _every(interval_s, tasks.FINISH_EXPORTS),
            "finish-evaluations": _every(interval_s, tasks.FINISH_EVALUATIONS),
            "install-benchmarks": _every(_INSTALL_INTERVAL_S, tasks.INSTALL_BENCHMARKS),
            "queue-evaluations": _every(interval_s, tasks.QUEUE_EVALUATIONS),
            "idle-endpoints": _every(_ENDPOINTS_INTERVAL_S, tasks.STOP_IDLE_ENDPOINTS),
            "write-reports": _every(_REPORTS_INTERVAL_S, tasks.WRITE_REPORTS),
            "tidy-evaluations": _every(_PURGE_INTERVAL_S, tasks.TIDY_EVALUATIONS),
            "prune": _every(_PURGE_INTERVAL_S, tasks.PRUNE),
            "purge": _every(_PURGE_INTERVAL_S, tasks.PURGE),
            "dry-runs": _every(_DRY_RUNS_SWEEP_INTERVAL_S, tasks.RUN_DRY_RUNS),
            "data-tasks": _every(_DATA_SWEEP_INTERVAL_S, tasks.RUN_DATA_TASKS),
            "previews": _every(_DATA_SWEEP_INTERVAL_S, tasks.RUN_PREVIEWS),
            "environments": _every(_ENVIRONMENTS_INTERVAL_S, tasks.MAKE_ENVIRONMENTS),
            "tool-calls": _every(_ENVIRONMENTS_INTERVAL_S, tasks.CALL_TOOLS),
            "workflows": _every(_ENVIRONMENTS_INTERVAL_S, tasks.INSTALL_WORKFLOWS),
            "job-pipelines": _every(interval_s, tasks.ADVANCE_JOB_PIPELINES),
            "fine-tuning": _every(interval_s, tasks.ADVANCE_FINE_TUNING),
            "sweeps": _every(interval_s, tasks.ADVANCE_SWEEPS),
            "tidy-data": _every(_TIDY_INTERVAL_S, tasks.TIDY_DATA),
            "fetch-models": _every(_MODELS_SWEEP_INTERVAL_S, tasks.FETCH_PENDING_MODELS),
            "transfers": _every(_TRANSFERS_INTERVAL_S, tasks.RUN_TRANSFERS),
        },
    }


def _every(interval_s: float, task: str) -> dict[str, Any]:
    """A sweep whose message expires before the next ones are due: none pile up while workers are away."""
    return {"task": task, "schedule": interval_s, "options": {"expires": max(2 * interval_s, 5.0)}}


app = Celery(
    "trellis",
    include=[
        "trellis_workers.jobs.tasks",
        "trellis_workers.evaluations.tasks",
        "trellis_workers.endpoints.tasks",
        "trellis_workers.fine_tuning.tasks",
        "trellis_workers.models.tasks",
        "trellis_workers.rewards.tasks",
        "trellis_workers.data.tasks",
        "trellis_workers.environments.tasks",
        "trellis_workers.transfers.tasks",
        "trellis_workers.workflows.tasks",
    ],
)
app.add_defaults(build_configuration)


@after_setup_logger.connect
def _tame_logs(**_signal: Any) -> None:
    """Mask secrets; and leave out what Celery says twice of every sweep, every other second."""
    install_log_redaction()
    for name in ("celery.app.trace", "celery.worker.strategy", "celery.beat"):
        logging.getLogger(name).setLevel(logging.WARNING)
