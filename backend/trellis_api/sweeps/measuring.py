"""What runs measured: the objective of each, its records at the rungs, and trials as means over seeds."""

import math
import statistics
from collections.abc import Mapping, Sequence

from sqlmodel import Session
from trellis_contracts.states import JobState
from trellis_recipes.headline_metrics import match_reported

from trellis_api.jobs.models import Job
from trellis_api.sweeps import repository
from trellis_api.sweeps.models import SweepRun
from trellis_api.sweeps.schemas import SweepCreate, TrialRead
from trellis_api.sweeps.search import Trial
from trellis_api.sweeps.stopping import Rung, is_worse, list_rungs, read_rung


def note(session: Session, run: SweepRun, job: Job, request: SweepCreate) -> None:
    """Keep the objective as it is now, and what the run had at the rungs that it has passed."""
    reported = repository.list_keys(session, job_id=job.id)
    key = match_reported(request.objective.metric or "", reported)
    points = repository.read_points(session, job_id=job.id, key=key)
    run.value, run.value_step = find_value(points, request)
    rule = request.early_stop
    if rule is None:
        return
    known = {each["step"] for each in run.rungs}
    found = list(run.rungs)
    for step in list_rungs(rule, last_step=points[-1][0] if points else 0):
        if step not in known:
            rung = read_rung(points, step, is_less_better=request.objective.mode == "min")
            if rung is not None:
                found.append(
                    {
                        "step": step,
                        **{
                            name: value if math.isfinite(value) else None
                            for name, value in (
                                ("value", rung.value), ("mean", rung.mean), ("best", rung.best)
                            )
                        },
                    }
                )  # fmt: skip
    if len(found) > len(run.rungs):
        run.rungs = found


def find_value(points: Sequence[tuple[int, float]], request: SweepCreate) -> tuple[float | None, int | None]:
    """Return the last or the best value with its step; Nones if no number was measured."""
    finite = [(value, step) for step, value in points if math.isfinite(value)]
    if not finite or (request.objective.take == "last" and not math.isfinite(points[-1][1])):
        return None, None
    if request.objective.take == "last":
        return finite[-1]
    sign = 1 if request.objective.mode == "min" else -1
    return min(finite, key=lambda each: (sign * each[0], each[1]))


def find_reason_to_stop(run: SweepRun, runs: Sequence[SweepRun], request: SweepCreate) -> str | None:
    """Find why a run is to be stopped early, by its newest record; None if it continues."""
    rule = request.early_stop
    if rule is None or not run.rungs:
        return None
    own = _read(run.rungs[-1], request)
    others = [
        _read(each, request)
        for other in runs
        if other.index != run.index
        for each in other.rungs
        if each["step"] == own.step
    ]
    if not is_worse(rule, own, others, is_less_better=request.objective.mode == "min"):
        return None
    return (
        f"Stopped early by the sweep's rule {rule.rule}: at step {own.step}, {request.objective.metric} was "
        f"{own.value:.4g}, worse than enough of the {len(others)} other runs measured there."
    )


def _read(record: dict[str, float | None], request: SweepCreate) -> Rung:
    bad = math.inf if request.objective.mode == "min" else -math.inf
    value, mean, best = (bad if record[each] is None else record[each] for each in ("value", "mean", "best"))
    return Rung(int(record["step"] or 0), float(value or 0), float(mean or 0), float(best or 0))


def has_failed(run: SweepRun, job: Job | None) -> bool:
    """Tell whether a run that has ended has failed."""
    return run.problem is not None or (job is not None and job.state in {JobState.FAILED, JobState.CRASHED})


def list_trials(runs: Sequence[SweepRun], jobs: Mapping[str, Job]) -> list[Trial]:
    """List trials in order, each with the mean over its seeds once all ended; without it if a seed failed."""
    job_of = {run.index: jobs.get(run.job_id or "") for run in runs}
    succeeded = {index for index, job in job_of.items() if job and job.state == JobState.SUCCEEDED}
    found: dict[int, list[SweepRun]] = {}
    for run in runs:
        found.setdefault(run.trial, []).append(run)
    trials = []
    for _, own in sorted(found.items()):
        is_over = all(run.is_over for run in own)
        is_whole = is_over and not any(has_failed(run, job_of[run.index]) for run in own)
        values = _list_counted(own, succeeded)
        mean = statistics.fmean(values) if values and is_whole else None
        trials.append(Trial(own[0].values, mean, is_over))
    return trials


def _list_counted(runs: Sequence[SweepRun], succeeded: set[int]) -> list[float]:
    """List the values of the finished runs, or of all as long as none has finished."""
    found = [(run.index in succeeded, run.value) for run in runs if run.value is not None]
    has_finished = any(is_finished for is_finished, _ in found)
    return [value for is_finished, value in found if is_finished or not has_finished]


def rank_trials(runs: Sequence[SweepRun], request: SweepCreate, *, succeeded: set[int]) -> list[TrialRead]:
    """Rank trials with a value, best first: those with all seeds finished, with some, and with none."""
    planned = len(request.seeds) or 1
    found: dict[int, list[SweepRun]] = {}
    for run in runs:
        if run.value is not None:
            found.setdefault(run.trial, []).append(run)
    sign = 1 if request.objective.mode == "min" else -1
    ranked = []
    for trial, own in found.items():
        values = _list_counted(own, succeeded)
        finished = sum(run.index in succeeded for run in own)
        spread = statistics.stdev(values) if len(values) > 1 else None
        read = TrialRead(
            trial=trial,
            values=own[0].values,
            run_count=len(values),
            finished_seeds=finished,
            planned_seeds=planned,
            mean=statistics.fmean(values),
            spread=spread,
        )
        ranked.append(((finished < planned, not finished, sign * read.mean, trial), read))
    return [read for _, read in sorted(ranked, key=lambda each: each[0])]
