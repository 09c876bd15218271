"""Decides about sweeps: what a person asks of one.

create / resume                                   the sweep is active
→ trellis_workers/jobs/advance_sweeps.py          every other second: ``advance.advance``
→ advance                                         begins runs, notes what they measured, stops the worse ones
"""

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.jobs import repository as jobs_repository
from trellis_api.jobs import service as jobs
from trellis_api.jobs.named import keep_named
from trellis_api.sweeps import repository
from trellis_api.sweeps.advance import find_used_budget, stop_runs
from trellis_api.sweeps.checking import require_plan
from trellis_api.sweeps.errors import SweepFinished, SweepNotFound, SweepNotRunning, SweepRunning
from trellis_api.sweeps.models import Sweep
from trellis_api.sweeps.named import list_named
from trellis_api.sweeps.presentation import can_resume, summarise_all
from trellis_api.sweeps.schemas import SweepCreate, SweepSummary
from trellis_api.sweeps.states import UNDER_WAY, SweepState


def create(session: Session, settings: Settings, *, request: SweepCreate) -> Sweep:
    """Write the sweep down; its runs begin within seconds. Everything that is wrong raises here."""
    keep_named(session, [list_named(request.model_dump(mode="json"))])
    plan = require_plan(session, settings, request=request)
    sweep = Sweep(
        id=new_id(repository.PREFIX),
        name=request.name,
        recipe=request.job.recipe,
        document=plan.request.model_dump(mode="json"),
    )
    session.add(sweep)
    session.flush()
    return sweep


def get_sweep(session: Session, *, sweep_id: str) -> Sweep:
    """Return the sweep; 404 if there is none."""
    sweep = repository.find_sweep(session, sweep_id=sweep_id)
    if sweep is None:
        raise _not_found(sweep_id)
    return sweep


def list_page(session: Session, *, cursor: str | None, limit: int) -> Page[SweepSummary]:
    """List one page, newest first."""
    before = decode_time_position(cursor) if cursor else None
    rows = repository.list_sweeps(session, before=before, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=summarise_all(session, shown), next_cursor=next_cursor)


def stop(session: Session, *, sweep_id: str) -> tuple[Sweep, list[str]]:
    """Begin no more runs and ask those that run to stop at a checkpoint; the ids of their jobs."""
    sweep = _lock(session, sweep_id)
    if sweep.state != SweepState.RUNNING:
        raise SweepNotRunning(f"'{sweep.name}' is {sweep.state}; there is nothing to stop.")
    sweep.is_active, sweep.state = False, SweepState.STOPPING.value
    session.add(sweep)
    asked = stop_runs(session, repository.list_runs(session, sweep_id=sweep.id))
    session.flush()
    return sweep, asked


def resume(session: Session, settings: Settings, *, sweep_id: str) -> Sweep:
    """Go on: runs that were stopped with it continue from their checkpoints, and the next ones begin."""
    sweep = _lock(session, sweep_id)
    if sweep.state in UNDER_WAY:
        raise SweepRunning(f"'{sweep.name}' is {sweep.state} already.")
    runs = repository.list_runs(session, sweep_id=sweep.id)
    request = SweepCreate.model_validate(sweep.document)
    if not can_resume(sweep, runs, request):
        raise SweepFinished(f"All runs of '{sweep.name}' have finished.")
    jobs_of_runs = jobs_repository.map_jobs(session, job_ids={run.job_id for run in runs if run.job_id})
    if (used := find_used_budget(session, sweep, request, list(jobs_of_runs.values()))) is not None:
        raise SweepFinished(f"'{sweep.name}' has used its {used}; start a new one.")
    for run in runs:
        if not run.is_paused:
            continue
        job = jobs_repository.lock_job(session, job_id=run.job_id) if run.job_id else None
        if job is not None and job.state in {JobState.STOPPED, JobState.CRASHED}:
            jobs.resume(session, job_id=job.id, data_root=settings.data_root)
        run.is_paused = False
        session.add(run)
    keep_named(session, [list_named(sweep.document)])
    sweep.is_active, sweep.state = True, SweepState.RUNNING.value
    sweep.reason = sweep.cause = None
    sweep.first_index = len(runs)
    sweep.started_at, sweep.finished_at = utc_now(), None
    session.add(sweep)
    session.flush()
    return sweep


def delete(session: Session, *, sweep_id: str) -> None:
    """Forget a sweep that is not under way; its jobs stay."""
    sweep = _lock(session, sweep_id)
    if sweep.state in UNDER_WAY:
        raise SweepRunning(f"'{sweep.name}' is {sweep.state}; stop it first.")
    repository.delete_sweep(session, sweep)


def _lock(session: Session, sweep_id: str) -> Sweep:
    sweep = repository.lock_sweep(session, sweep_id=sweep_id)
    if sweep is None:
        raise _not_found(sweep_id)
    return sweep


def _not_found(sweep_id: str) -> SweepNotFound:
    return SweepNotFound(f"Sweep '{sweep_id[:80]}' not found.")
