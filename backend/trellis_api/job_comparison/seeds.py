"""Which setting is better, and by how much, with the spread over seeds taken into account."""

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.job_comparison import parameters, service
from trellis_api.job_comparison.errors import InvalidComparison
from trellis_api.job_comparison.schemas import (
    BestRun,
    ComparedSeeds,
    GroupDifference,
    SeedGroup,
    SeedValue,
    Take,
    Verdict,
)
from trellis_api.jobs import presentation
from trellis_api.jobs.checkpoints.best import Criterion, choose_criterion
from trellis_api.jobs.metrics import headline
from trellis_api.jobs.metrics.direction import Mode, find_direction, is_validation, suit_mode
from trellis_api.jobs.models import Job

#: Below this a difference is called one: the usual bound.
LEVEL = 0.05
#: A word of a name, or what stands between two.
_WORDS = re.compile(r"[^\s\-_·:,;#=()\[\]]+|[\s\-_·:,;#=()\[\]]+")
#: What is left of "seed 1" where names part.
_SEED = re.compile(r"(?:(?:^|[\W_]+)(?:seed|s))?[\W_]*$", re.IGNORECASE)
_FAILED = (JobState.FAILED, JobState.CRASHED)
#: Value and step of each job that reported the metric.
Values = Mapping[str, tuple[float, int | None]]


@dataclass(frozen=True)
class Measured:
    """What the database has: groups of jobs and their values of one metric."""

    metric: str | None
    #: None where neither more nor less of the metric is better.
    mode: Mode | None
    take: Take
    groups: list[SeedGroup]
    baseline: int
    values: dict[str, float]
    best: BestRun | None


def measure(
    session: Session, *, ids: Sequence[str], baseline: str | None, metric: str | None, take: Take | None
) -> Measured:
    """Group jobs by seed and read the metric of each; ``InvalidComparison`` for a baseline from outside."""
    jobs = service.find_jobs(session, ids=ids)
    base = baseline or jobs[0].id
    if base not in {job.id for job in jobs}:
        raise InvalidComparison("The baseline is not among the jobs.")
    reads = presentation.present_all(session, jobs=jobs)
    settings = parameters.describe(session, jobs=jobs, reads=reads)
    groups = parameters.list_groups(session, settings=settings, jobs=jobs)
    series = headline.find_many(session.connection(), jobs=jobs, keys=None if metric is None else [metric])
    first = next(ids for ids in groups if base in ids)
    criterion = _choose_criterion(jobs, base, groups, series, metric)
    key, mode = (None, suit_mode("")) if criterion is None else (criterion.metric, criterion.mode)
    chosen: Take = take or ("best" if key is not None and is_validation(key) else "last")
    values = {} if key is None else _read_values(session, series, key, mode, chosen)
    direction = find_direction(key or "", jobs=jobs)
    by_id = {job.id: job for job in jobs}
    summaries = [_summarise([by_id[each] for each in ids], values) for ids in groups]
    taken = Counter(group.name for group in summaries)
    for group in summaries:
        if taken[group.name] > 1:
            group.name = by_id[group.job_ids[0]].name
    return Measured(
        metric=key,
        mode=direction,
        take=chosen,
        groups=summaries,
        baseline=groups.index(first),
        values={job_id: value for job_id, (value, _) in values.items()},
        best=None if direction is None else _find_best(jobs, values, direction),
    )


def compare(measured: Measured) -> ComparedSeeds:
    """Test each group against the baseline's. No transaction is open meanwhile: scipy loads slowly."""
    base = measured.groups[measured.baseline]
    found = [
        _test(number, base, group)
        for number, group in enumerate(measured.groups)
        if number != measured.baseline and base.mean is not None and group.mean is not None
    ]
    _judge(found, mode=measured.mode)
    return ComparedSeeds(
        metric=measured.metric,
        mode=measured.mode,
        take=measured.take,
        groups=measured.groups,
        baseline=measured.baseline,
        differences=found,
        values=measured.values,
        best=measured.best,
    )


def _choose_criterion(
    jobs: Sequence[Job],
    base: str,
    groups: Sequence[Sequence[str]],
    series: Mapping[str, Mapping[str, headline.Series]],
    metric: str | None,
) -> Criterion | None:
    """Return the baseline's criterion among the metrics that two groups share, else that of another job.

    A metric that was asked for is better in the direction that a job's own choice of it states.
    """
    ordered = sorted(jobs, key=lambda job: job.id != base)
    if metric is not None:
        stated = (job.keep_best_by for job in ordered if job.keep_best_by)
        mode = next((own.get("mode") for own in stated if own["metric"] == metric), None)
        return Criterion(metric, mode or suit_mode(metric))
    reported = [{key for each in ids for key in series.get(each, {})} for ids in groups]
    shared = {key for keys in reported for key in keys if sum(key in own for own in reported) > 1}
    if len(groups) == 1:
        shared = reported[0]
    for job in ordered:
        criterion = choose_criterion(job, reported=shared)
        if criterion is not None and criterion.metric in shared:
            return criterion
    found = min((key for key in shared if is_validation(key)), default=None)
    return None if found is None else Criterion(found, suit_mode(found))


def _read_values(
    session: Session, series: Mapping[str, Mapping[str, headline.Series]], key: str, mode: Mode, take: Take
) -> dict[str, tuple[float, int | None]]:
    own = {job_id: replace(keys[key], stated_mode=mode) for job_id, keys in series.items() if key in keys}
    summaries = headline.read_summaries(session.connection(), list(own.values()))
    found = {}
    for job_id, each in own.items():
        summary = summaries.get(each.id)
        if summary is None:
            continue
        value, step = (
            (summary.last, summary.last_step) if take == "last" else (summary.best, summary.best_step)
        )
        if value is not None:
            found[job_id] = (value, step)
    return found


def _summarise(jobs: Sequence[Job], values: Values) -> SeedGroup:
    """Summarize one value per seed: of the jobs that succeeded, or of all as long as none has.

    Seeds that failed beside others that succeeded are named: the mean of those that got through says less.
    """
    measured = [job for job in jobs if job.id in values]
    counted = [job for job in measured if job.state == JobState.SUCCEEDED] or measured
    found = [SeedValue(job_id=job.id, seed=job.seed, value=values[job.id][0]) for job in counted]
    means = _list_means(found)
    return SeedGroup(
        name=name_group(jobs),
        job_ids=[job.id for job in jobs],
        seed_count=len(means),
        mean=statistics.fmean(means) if means else None,
        deviation=statistics.stdev(means) if len(means) > 1 else None,
        values=found,
        left_out=[job.id for job in jobs if job not in counted],
        failed=[job.id for job in jobs if job not in counted and job.state in _FAILED],
    )


def name_group(jobs: Sequence[Job]) -> str:
    """Return the group's name in a sweep, else the words that all job names begin with, without "seed"."""
    trials = {(job.sweep_id, job.group) for job in jobs}
    if len(trials) == 1 and jobs[0].sweep_id is not None and jobs[0].group:
        return jobs[0].group
    words = zip(*(_WORDS.findall(job.name) for job in jobs), strict=False)
    common = "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, words))
    return jobs[0].name if len(jobs) == 1 else _SEED.sub("", common) or jobs[0].name


def _find_best(jobs: Sequence[Job], values: Values, mode: Mode) -> BestRun | None:
    """Find the best of the jobs that succeeded: a value from before a crash is nothing to build on."""
    sign = 1 if mode == "min" else -1
    succeeded = {job.id for job in jobs if job.state == JobState.SUCCEEDED}
    counted = {job_id: own for job_id, own in values.items() if job_id in succeeded} or values
    found = min(counted.items(), key=lambda each: sign * each[1][0], default=None)
    return None if found is None else BestRun(job_id=found[0], value=found[1][0], step=found[1][1])


def _list_means(values: Sequence[SeedValue]) -> list[float]:
    """List one mean per seed: runs with the same seed are not independent measurements."""
    by_seed: dict[int, list[float]] = {}
    for each in values:
        by_seed.setdefault(each.seed, []).append(each.value)
    return [statistics.fmean(own) for own in by_seed.values()]


def _test(number: int, base: SeedGroup, group: SeedGroup) -> GroupDifference:
    from trellis_evaluation.statistics import welch  # scipy: not before somebody compares

    difference = (group.mean or 0.0) - (base.mean or 0.0)
    found = GroupDifference(
        group=number,
        verdict="too_few_seeds",
        difference=difference,
        low=None,
        high=None,
        p_value=None,
        p_adjusted=None,
    )
    if min(base.seed_count, group.seed_count) < 2:
        return found
    test = welch(_list_means(base.values), _list_means(group.values))
    if test.interval is None:
        return found.model_copy(update={"verdict": "no_spread"})
    return found.model_copy(
        update={
            "verdict": "unclear",
            "low": test.interval.low,
            "high": test.interval.high,
            "p_value": test.p_value,
        }
    )


def _judge(found: Sequence[GroupDifference], *, mode: Mode | None) -> None:
    """Adjust the p-values of all tests together, and call differences better or worse by them."""
    from trellis_evaluation.statistics import holm

    tested = [each for each in found if each.p_value is not None]
    for each, adjusted in zip(tested, holm([each.p_value or 0.0 for each in tested]), strict=True):
        each.p_adjusted = adjusted
        if adjusted < LEVEL:
            each.verdict = _name_verdict(each.difference, mode)


def _name_verdict(difference: float, mode: Mode | None) -> Verdict:
    if mode is None:
        return "different"
    return "better" if (difference < 0) == (mode == "min") else "worse"
