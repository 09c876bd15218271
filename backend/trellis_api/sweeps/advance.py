"""Takes a sweep one look further: notes what runs measured, stops the worse ones, begins the next.

Every look decides from the rows alone, under the sweep's lock. A run and its job are written in one
transaction under the run's number: whatever dies, no run is lost and none is begun twice.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from pydantic import ValidationError
from sqlmodel import Session
from trellis_contracts.states import ACTIVE, JobState
from trellis_recipes.headline_metrics import match_reported

from trellis_api.core.columns import utc_now
from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.jobs import repository as jobs_repository
from trellis_api.jobs import service as jobs
from trellis_api.jobs import submit
from trellis_api.jobs.metrics.direction import is_validation
from trellis_api.jobs.models import Job
from trellis_api.jobs.run_time import current_run_s
from trellis_api.jobs.schemas import BestBy
from trellis_api.sweeps import measuring, repository
from trellis_api.sweeps.checking import job_request, read_integers
from trellis_api.sweeps.models import Sweep, SweepRun
from trellis_api.sweeps.schemas import SweepCreate
from trellis_api.sweeps.search import propose
from trellis_api.sweeps.states import UNDER_WAY, SweepState

log = logging.getLogger(__name__)
PRUNED = "sweep_pruned"
HOURS_USED = "sweep_hours_used"
RUNS_FAILED = "sweep_runs_failed"
METRIC_MISSING = "sweep_metric_missing"
UNEXPECTED = "sweep_failed"
_ABORTED = frozenset({RUNS_FAILED, METRIC_MISSING, UNEXPECTED})
#: A machine's fault is none of the run's: it goes on from its checkpoint, this often.
_MAX_RESUMES = 2
#: So many runs that fail, and none that does not, end a sweep.
_MAX_FAILURES = 3
_MAX_REASON = 2000


@dataclass
class Look:
    """What a look has led to."""

    has_queued: bool = False
    #: Jobs that were asked to stop.
    stopping: list[str] = field(default_factory=list)
    #: Whether another run may begin at once, in a transaction of its own.
    has_more: bool = False


@dataclass
class _State:
    session: Session
    settings: Settings
    sweep: Sweep
    request: SweepCreate
    runs: list[SweepRun]
    jobs: dict[str, Job]
    look: Look

    def job_of(self, run: SweepRun) -> Job | None:
        return self.jobs.get(run.job_id) if run.job_id else None

    def list_active(self) -> list[tuple[SweepRun, Job]]:
        found = [(run, self.job_of(run)) for run in self.runs]
        return [(run, job) for run, job in found if job is not None and job.state in ACTIVE]


def advance_in(
    write: Callable[[], AbstractContextManager[Session]], settings: Settings, *, sweep_id: str
) -> Look:
    """Advance a sweep, with a transaction for each run that begins: composing takes its time."""
    found = Look(has_more=True)
    while found.has_more:
        with write() as session:
            one = advance(session, settings, sweep_id=sweep_id)
        found.has_queued |= one.has_queued
        found.stopping += one.stopping
        found.has_more = one.has_more
    return found


def advance(session: Session, settings: Settings, *, sweep_id: str) -> Look:
    """Advance a sweep by one step, in which one run begins at most."""
    look = Look()
    sweep = repository.lock_sweep(session, sweep_id=sweep_id)
    if sweep is None:
        return look
    runs = repository.list_runs(session, sweep_id=sweep_id)
    found = {run.job_id for run in runs if run.job_id}
    state = _State(
        session=session,
        settings=settings,
        sweep=sweep,
        request=SweepCreate.model_validate(sweep.document),
        runs=runs,
        jobs=_lock_jobs(session, found),
        look=look,
    )
    for run in runs:
        _take_in(state, run)
    if sweep.is_active:
        _prune(state)
        _end_early(state)
    if sweep.is_active:
        _begin_run(state)
    # With more to begin, it is as open as before.
    if not look.has_more:
        _settle(state)
    return look


def give_up(session: Session, *, sweep_id: str, problem: str) -> list[str]:
    """Fail a sweep that cannot be looked at; the jobs that were asked to stop."""
    sweep = repository.lock_sweep(session, sweep_id=sweep_id)
    if sweep is None or not sweep.is_active:
        return []
    sweep.is_active, sweep.reason, sweep.cause = False, problem[:_MAX_REASON], UNEXPECTED
    runs = repository.list_runs(session, sweep_id=sweep_id)
    sweep.state = SweepState.STOPPING.value
    session.add(sweep)
    session.flush()
    return stop_runs(session, runs)


def stop_runs(session: Session, runs: Sequence[SweepRun]) -> list[str]:
    """Ask the jobs of runs that wait or run to stop, so that a resume goes on with them; their ids."""
    asked = []
    for run in runs:
        job = jobs_repository.lock_job(session, job_id=run.job_id) if run.job_id else None
        if job is None or job.state not in ACTIVE:
            continue
        if run.pruned_at is None:
            run.is_paused = True
            session.add(run)
        if job.state in jobs.STOPPABLE:
            jobs.request_stop(session, job_id=job.id)
            asked.append(job.id)
    session.flush()
    return asked


def _lock_jobs(session: Session, job_ids: set[str]) -> dict[str, Job]:
    """Return the current jobs; those that may change are locked, always in the same order."""
    found = jobs_repository.map_jobs(session, job_ids=job_ids)
    for job_id in sorted(job_id for job_id, job in found.items() if job.state in ACTIVE):
        if (job := jobs_repository.lock_job(session, job_id=job_id)) is not None:
            found[job_id] = job
    return found


# -- what runs have come to


def _take_in(state: _State, run: SweepRun) -> None:
    job = state.job_of(run)
    if job is None:
        run.is_over, run.is_paused = True, False
    elif job.state in ACTIVE:
        run.is_over = False
        measuring.note(state.session, run, job, state.request)
    elif not run.is_over:
        measuring.note(state.session, run, job, state.request)
        _take_in_end(state, run, job)
    state.session.add(run)


def _take_in_end(state: _State, run: SweepRun, job: Job) -> None:
    is_cut = job.state in {JobState.STOPPED, JobState.CRASHED} and run.pruned_at is None
    if is_cut and run.is_paused:
        return
    if is_cut and job.state == JobState.CRASHED:
        if not state.sweep.is_active:
            run.is_paused = True
            return
        if job.attempt <= _MAX_RESUMES:
            _resume(state, job)
            return
    run.is_over, run.is_paused = True, False


def _resume(state: _State, job: Job) -> None:
    data_root = state.settings.data_root
    state.jobs[job.id] = jobs.resume(state.session, job_id=job.id, data_root=data_root)
    state.look.has_queued = True
    log.info("sweep %s: %s crashed and goes on", state.sweep.id, job.id)


def _prune(state: _State) -> None:
    """Stop the runs that are worse than others at a step that both have passed."""
    if state.request.early_stop is None:
        return
    for run, job in state.list_active():
        if run.pruned_at is not None or job.state not in jobs.STOPPABLE or job.state == JobState.QUEUED:
            continue
        reason = measuring.find_reason_to_stop(run, state.runs, state.request)
        if reason is not None:
            run.pruned_at, run.is_paused = utc_now(), False
            job.reason, job.cause = reason, PRUNED
            state.session.add(job)
            jobs.request_stop(state.session, job_id=job.id)
            state.look.stopping.append(job.id)


def _end_early(state: _State) -> None:
    """End a sweep that leads nowhere, and let none begin a run after its hours."""
    over = [run for run in state.runs if run.is_over and run.index >= state.sweep.first_index]
    failed = [run for run in over if measuring.has_failed(run, state.job_of(run))]
    if len(failed) >= _MAX_FAILURES and len(failed) == len(over):
        last = failed[-1]
        job = state.job_of(last)
        why = last.problem or (job.reason if job else None) or "no reason given"
        _abort(state, RUNS_FAILED, f"The first {len(failed)} runs failed; the last one: {why}")
        return
    done = [run for run in over if (job := state.job_of(run)) and job.state == JobState.SUCCEEDED]
    if not done or any(run.value is not None for run in done):
        return
    # A run whose last value is no number has reported the metric, and another may do better.
    keys = [repository.list_keys(state.session, job_id=run.job_id or "") for run in done]
    metric = state.request.objective.metric or ""
    if not any(match_reported(metric, each) in each for each in keys):
        shown = ", ".join(keys[0][:20]) or "nothing"
        _abort(state, METRIC_MISSING, f"A run has finished without '{metric}'. It reported: {shown}.")


def _abort(state: _State, cause: str, reason: str) -> None:
    log.warning("sweep %s ends: %s", state.sweep.id, reason)
    state.sweep.is_active = False
    state.sweep.cause, state.sweep.reason = cause, reason[:_MAX_REASON]
    state.look.stopping += stop_runs(state.session, state.runs)


# -- the next runs


def _begin_run(state: _State) -> None:
    if not _are_hours_used(state) and _has_room(state):
        state.look.has_more = _begin_one(state) and _has_room(state)


def _has_room(state: _State) -> bool:
    is_planned_out = len(state.runs) >= (state.request.budget.runs or 0)
    return not is_planned_out and len(state.list_active()) < (state.request.parallel or 1)


def _are_hours_used(state: _State) -> bool:
    found = find_used_budget(state.session, state.sweep, state.request, list(state.jobs.values()))
    if found is None:
        return False
    if state.sweep.cause is None:
        state.sweep.cause = HOURS_USED
        state.sweep.reason = f"The budget of {found} is used up; no more runs start."
    queued = [run for run, job in state.list_active() if job.state == JobState.QUEUED]
    state.look.stopping += stop_runs(state.session, queued)
    return True


def _begin_one(state: _State) -> bool:
    """Write the next run with its job; False where the search has no more."""
    request, index = state.request, len(state.runs)
    trial, place = divmod(index, len(request.seeds))
    values = (
        state.runs[index - place].values
        if place
        else propose(
            request.search,
            request.parameters,
            read_integers(request),
            trials=measuring.list_trials(state.runs, state.jobs),
            mode=request.objective.mode or "max",
            budget=(request.budget.runs or 1) // len(request.seeds),
        )
    )
    if values is None:
        return False
    run = SweepRun(
        sweep_id=state.sweep.id, index=index, trial=trial, seed=request.seeds[place], values=values
    )
    try:
        with state.session.begin_nested():
            job = _submit(state, run)
        run.job_id = job.id
        state.jobs[job.id] = job
        state.look.has_queued = True
    except (DomainError, ValidationError) as error:
        run.problem, run.is_over = str(error)[:_MAX_REASON], True
        log.warning("sweep %s: run %d cannot begin: %s", state.sweep.id, index, error)
    state.session.add(run)
    state.session.flush()
    state.runs.append(run)
    return True


def _submit(state: _State, run: SweepRun) -> Job:
    name = f"{state.sweep.name} · {run.index + 1}"
    asked = job_request(state.request, name=name, values=run.values, seed=run.seed)
    objective = state.request.objective
    has_rule = asked.keep_best_by is not None or (asked.evaluate is not None and asked.evaluate.best_by)
    if objective.metric and is_validation(objective.metric) and not has_rule:
        asked.keep_best_by = BestBy(metric=objective.metric, mode=objective.mode)
    job = submit.submit(state.session, request=asked, settings=state.settings)
    job.sweep_id, job.group = state.sweep.id, f"{state.sweep.name} · {run.trial + 1}"
    state.session.add(job)
    state.session.flush()
    return job


# -- the sweep itself


def elapsed_s(sweep: Sweep) -> float:
    """Return the seconds that the sweep has run, stops excluded."""
    now = 0.0 if sweep.finished_at else (utc_now() - sweep.started_at).total_seconds()
    return sweep.earlier_s + max(0.0, now)


def used_slot_hours(session: Session, found: Sequence[Job]) -> float:
    """Return the slot-hours that jobs have used in all their attempts."""
    earlier = jobs_repository.sum_earlier_run_times(session, jobs=found)
    seconds = 0.0
    for job in found:
        seconds += job.gpus * (current_run_s(job) + earlier.get(job.id, 0.0))
    return seconds / 3600


def find_used_budget(
    session: Session, sweep: Sweep, request: SweepCreate, found: Sequence[Job]
) -> str | None:
    """Describe the time budget that is used up; None if there is some left."""
    budget = request.budget
    if budget.hours is not None and elapsed_s(sweep) >= budget.hours * 3600:
        return f"{budget.hours:g} hours"
    if budget.slot_hours is not None and used_slot_hours(session, found) >= budget.slot_hours:
        return f"{budget.slot_hours:g} slot-hours"
    return None


def _settle(state: _State) -> None:
    sweep = state.sweep
    is_open = any(not run.is_over and not run.is_paused for run in state.runs) or bool(state.list_active())
    if sweep.is_active:
        if not is_open:  # nothing was begun either: the search, the runs or the hours are used up
            sweep.is_active = False
            has_value = any(run.value is not None for run in state.runs)
            _end(sweep, SweepState.SUCCEEDED if has_value else SweepState.FAILED)
            if not has_value and sweep.reason is None:
                sweep.reason = "No run has finished with a value of the metric."
    elif sweep.state not in UNDER_WAY:
        pass  # a person goes on with a run by hand, which changes nothing of how the sweep ended
    elif is_open:
        sweep.state = SweepState.STOPPING.value
    else:
        _end(sweep, SweepState.FAILED if sweep.cause in _ABORTED else SweepState.STOPPED)
    state.session.add(sweep)
    state.session.flush()


def _end(sweep: Sweep, to: SweepState) -> None:
    sweep.earlier_s = elapsed_s(sweep)
    sweep.finished_at = utc_now()
    sweep.state = to.value
