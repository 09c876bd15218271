"""Turns rows of sweeps into what clients read."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.references import NamedReference
from trellis_api.datasets.repository import map_dataset_names
from trellis_api.jobs.models import Job
from trellis_api.jobs.presentation import present_progress
from trellis_api.jobs.repository import map_jobs, sum_earlier_run_times
from trellis_api.jobs.run_time import current_run_s
from trellis_api.models.repository import map_model_names
from trellis_api.sweeps import importance, measuring, repository
from trellis_api.sweeps.advance import PRUNED, elapsed_s, used_slot_hours
from trellis_api.sweeps.models import Sweep, SweepRun
from trellis_api.sweeps.schemas import (
    Importance,
    SweepCreate,
    SweepRead,
    SweepRunRead,
    SweepSummary,
    TrialRead,
)
from trellis_api.sweeps.states import FINISHED, UNDER_WAY, RunState, SweepState, of_run

SEED = "seed"


def can_resume(sweep: Sweep, runs: Sequence[SweepRun], request: SweepCreate) -> bool:
    """Tell whether there is anything left to resume."""
    is_left = any(run.is_paused for run in runs) or len(runs) < (request.budget.runs or 0)
    return sweep.state not in (*UNDER_WAY, SweepState.SUCCEEDED) and is_left


def summarise_all(session: Session, sweeps: Sequence[Sweep]) -> list[SweepSummary]:
    """Summarize several sweeps with a fixed number of queries."""
    by_sweep = repository.map_runs(session, sweep_ids=[sweep.id for sweep in sweeps])
    job_ids = {run.job_id for runs in by_sweep.values() for run in runs if run.job_id}
    jobs = map_jobs(session, job_ids=job_ids)
    return [SweepSummary(**_summarise(each, by_sweep.get(each.id, []), jobs)) for each in sweeps]


def present(session: Session, sweep: Sweep) -> SweepRead:
    """Present one sweep with its runs, ranked."""
    request = SweepCreate.model_validate(sweep.document)
    runs = repository.list_runs(session, sweep_id=sweep.id)
    jobs = map_jobs(session, job_ids={run.job_id for run in runs if run.job_id})
    earlier = sum_earlier_run_times(session, jobs=list(jobs.values()))
    trials = _rank(runs, jobs, request)
    job = request.job
    return SweepRead(
        **_summarise(sweep, runs, jobs),
        request=request,
        parallel=request.parallel or 1,
        model=NamedReference(
            id=job.model, name=map_model_names(session, model_ids={job.model}).get(job.model)
        ),
        dataset=NamedReference(
            id=job.dataset, name=map_dataset_names(session, dataset_ids={job.dataset}).get(job.dataset)
        ),
        runs=[_present_run(run, jobs, earlier) for run in runs],
        trials=trials,
        best_run=_find_best_run(runs, jobs, request, trials),
        importance=_measure_importance(runs, jobs, request),
        elapsed_s=round(elapsed_s(sweep), 1),
        slot_hours=round(used_slot_hours(session, list(jobs.values())), 4),
    )


def _summarise(sweep: Sweep, runs: Sequence[SweepRun], jobs: dict[str, Job]) -> dict[str, Any]:
    request = SweepCreate.model_validate(sweep.document)
    trials = _rank(runs, jobs, request)
    return {
        "id": sweep.id,
        "name": sweep.name,
        "recipe": sweep.recipe,
        "state": SweepState(sweep.state),
        "objective": request.objective,
        "search": request.search,
        "parameters": list(request.parameters),
        "planned_runs": request.budget.runs or 0,
        "counts": dict(Counter(_state(run, jobs) for run in runs)),
        "best": trials[0] if trials else None,
        "reason": sweep.reason,
        "cause": sweep.cause,
        "created_at": sweep.created_at,
        "finished_at": sweep.finished_at,
        "can_stop": sweep.state == SweepState.RUNNING,
        "can_resume": can_resume(sweep, runs, request),
        "can_delete": sweep.state not in UNDER_WAY,
    }


def _state(run: SweepRun, jobs: dict[str, Job]) -> RunState:
    job = jobs.get(run.job_id) if run.job_id else None
    return of_run(
        job_state=job.state if job else None,
        is_pruned=run.pruned_at is not None,
        is_refused=run.problem is not None,
    )


def _rank(runs: Sequence[SweepRun], jobs: dict[str, Job], request: SweepCreate) -> list[TrialRead]:
    succeeded = {run.index for run in runs if _state(run, jobs) == RunState.SUCCEEDED}
    return measuring.rank_trials(runs, request, succeeded=succeeded)


def _find_best_run(
    runs: Sequence[SweepRun], jobs: dict[str, Job], request: SweepCreate, trials: list[TrialRead]
) -> int | None:
    if not trials:
        return None
    own = [run for run in runs if run.trial == trials[0].trial and run.value is not None]
    finished = [run for run in own if _state(run, jobs) == RunState.SUCCEEDED] or own
    sign = 1 if request.objective.mode == "min" else -1
    return min(finished, key=lambda run: (sign * (run.value or 0.0), run.index)).index


def _measure_importance(runs: Sequence[SweepRun], jobs: dict[str, Job], request: SweepCreate) -> Importance:
    names = [*request.parameters, *([SEED] if len(request.seeds) > 1 else [])]
    # A run that was stopped early is no measurement of the same length.
    measured = [
        ({**run.values, SEED: run.seed}, run.value)
        for run in runs
        if run.value is not None and _state(run, jobs) in FINISHED - {RunState.PRUNED}
    ]
    return importance.measure(measured, names)


def _present_run(run: SweepRun, jobs: dict[str, Job], earlier: dict[str, float]) -> SweepRunRead:
    job = jobs.get(run.job_id) if run.job_id else None
    has_failed = job is not None and job.state in {JobState.FAILED, JobState.CRASHED}
    return SweepRunRead(
        index=run.index,
        trial=run.trial,
        seed=run.seed,
        values=run.values,
        state=_state(run, jobs),
        job=NamedReference(id=run.job_id, name=job.name if job else None) if run.job_id else None,
        job_state=job.state if job else None,
        progress=present_progress(job) if job else None,
        value=run.value,
        value_step=run.value_step,
        duration_s=_duration_s(job, earlier) if job else None,
        pruned_at=run.pruned_at,
        problem=run.problem or (job.reason if job and has_failed else None),
        prune_reason=job.reason if job and run.pruned_at and job.cause == PRUNED else None,
    )


def _duration_s(job: Job, earlier: dict[str, float]) -> float | None:
    if job.started_at is None:
        return earlier.get(job.id)
    return round(current_run_s(job) + earlier.get(job.id, 0.0), 1)
