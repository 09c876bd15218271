"""The Celery tasks of the jobs domain. Each does one short piece of work; none waits for a run."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.jobs import (
    advance_pipelines,
    advance_sweeps,
    finish_exports,
    launch,
    leftovers,
    prune,
    purge,
    reconcile,
    stop,
    wandb_reports,
    warm_up,
)

#: Longer than any sweep takes; a sweep that hangs must not occupy its process for ever.
_TIME_LIMIT_S = 120
_REPORTS_LOCK = "run/wandb.lock"

warm_up.install()


@app.task(name=tasks.LAUNCH_QUEUED, time_limit=_TIME_LIMIT_S)
def launch_queued() -> None:
    """Launch what the free slots admit."""
    launch.launch_queued()


@app.task(name=tasks.RECONCILE, time_limit=_TIME_LIMIT_S)
def reconcile_jobs() -> None:
    """Settle what is over; slots that became free are given on at once."""
    if reconcile.reconcile():
        launch.launch_queued()


@app.task(name=tasks.ADVANCE_JOB_PIPELINES, time_limit=_TIME_LIMIT_S)
def advance_job_pipelines() -> None:
    """Take pipelines of jobs further; what was queued is launched at once."""
    if advance_pipelines.advance_pipelines():
        launch.launch_queued()


@app.task(name=tasks.ADVANCE_SWEEPS, time_limit=_TIME_LIMIT_S)
def advance_all_sweeps() -> None:
    """Take sweeps further; what was queued is launched at once, what shall end is told."""
    found = advance_sweeps.advance_sweeps()
    for job_id in found.stopping:
        stop.request_stop(job_id)
    if found.has_queued:
        launch.launch_queued()


@app.task(name=tasks.FINISH_EXPORTS)
def finish_exports_that_are_over() -> None:
    """Register what exports wrote (without a time limit: gigabytes are hashed)."""
    finish_exports.finish_exports()


@app.task(name=tasks.STOP, time_limit=_TIME_LIMIT_S)
def stop_job(job_id: str) -> None:
    """Tell a run to stop."""
    stop.request_stop(job_id)


@app.task(name=tasks.PRUNE)
def prune_checkpoints() -> None:
    """Remove the files of checkpoints that were given up (without a time limit: they are large)."""
    prune.prune_checkpoints()


@app.task(name=tasks.PURGE)
def purge_deleted() -> None:
    """Remove the files of deleted jobs and failed exports (without a time limit: they are large)."""
    try:
        purge.purge_deleted()
    finally:
        leftovers.remove_leftovers()


@app.task(name=tasks.SEND_REPORTS, time_limit=_TIME_LIMIT_S)
def send_reports() -> None:
    """Send new metrics of jobs to the services that they name: one worker at a time."""
    with try_lock(get_settings().data_root / _REPORTS_LOCK) as has_lock:
        if has_lock:
            wandb_reports.send_reports()
