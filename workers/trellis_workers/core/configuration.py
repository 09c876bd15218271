"""Celery's settings and its schedule, for workers and for beat.

No task waits for a training run, and no task is needed to arrive: beat asks every other
second whether a sweep has something to do, and the sweeps find in the database whatever a
lost message was about.
"""

from typing import Any

from trellis_contracts import tasks

from trellis_workers.core import presence
from trellis_workers.core.settings import get_settings

#: A task that Redis handed out and that nobody finished comes back after this time.
_VISIBILITY_TIMEOUT_S = 3_600
#: A message waits no longer for a worker: the next look sends it again.
EXPIRES_S = 5.0
_CARE_INTERVAL_S = 30.0
_TIDY_INTERVAL_S = 600.0
#: Sweeps that ``trellis_workers/due`` sends when they have something to do; each is run so often anyway.
_SAFETY_INTERVAL_S = 60.0
SWEEPS = (
    tasks.LAUNCH_QUEUED,
    tasks.RECONCILE,
    tasks.FINISH_EXPORTS,
    tasks.FINISH_EVALUATIONS,
    tasks.INSTALL_BENCHMARKS,
    tasks.QUEUE_EVALUATIONS,
    tasks.STOP_IDLE_ENDPOINTS,
    tasks.WRITE_REPORTS,
    tasks.RUN_DRY_RUNS,
    tasks.RUN_DATA_TASKS,
    tasks.RUN_PREVIEWS,
    tasks.MAKE_ENVIRONMENTS,
    tasks.CALL_TOOLS,
    tasks.INSTALL_WORKFLOWS,
    tasks.ADVANCE_JOB_PIPELINES,
    tasks.ADVANCE_FINE_TUNING,
    tasks.ADVANCE_SWEEPS,
    tasks.RUN_TRANSFERS,
)


def build_configuration() -> dict[str, Any]:
    """Build Celery's configuration from the platform's (read when first needed, not at import)."""
    settings = get_settings()
    if not settings.redis_url:
        raise RuntimeError("TRELLIS_REDIS_URL is not set; the workers need a broker.")
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
            "look-for-work": _every(interval_s, tasks.LOOK_FOR_WORK),
            **{name: _every(_SAFETY_INTERVAL_S, name) for name in SWEEPS},
            # It also ends what runs on Ray without a row, which no look at the database finds.
            tasks.RECONCILE: _every(_CARE_INTERVAL_S, tasks.RECONCILE),
            "sample-machines": _every(tasks.SAMPLE_INTERVAL_S, tasks.SAMPLE_MACHINES),
            "tidy-evaluations": _every(_CARE_INTERVAL_S, tasks.TIDY_EVALUATIONS),
            "send-reports": _every(_CARE_INTERVAL_S, tasks.SEND_REPORTS),
            "prune": _every(_CARE_INTERVAL_S, tasks.PRUNE),
            "purge": _every(_CARE_INTERVAL_S, tasks.PURGE),
            "fetch-models": _every(_CARE_INTERVAL_S, tasks.FETCH_PENDING_MODELS),
            "tidy-data": _every(_TIDY_INTERVAL_S, tasks.TIDY_DATA),
        },
    }


def _every(interval_s: float, task: str) -> dict[str, Any]:
    """Schedule a periodic task whose messages expire soon, so that none pile up while workers are down."""
    return {"task": task, "schedule": interval_s, "options": {"expires": max(2 * interval_s, EXPIRES_S)}}
