"""Jobs side by side: settings, metrics, curves and responses to the same prompts."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, func, or_
from sqlmodel import Session, col, select

from trellis_api.core.ids import is_id, split_ids
from trellis_api.job_comparison import parameters
from trellis_api.job_comparison.errors import InvalidComparison
from trellis_api.job_comparison.schemas import (
    ComparedCurves,
    ComparedMeans,
    ComparedMetric,
    ComparedRollouts,
    GroupMeans,
    JobComparison,
    MeanSeries,
    MetricChoice,
    PromptResponses,
    RunCurves,
)
from trellis_api.jobs import presentation, repository, results
from trellis_api.jobs.errors import JobNotFound
from trellis_api.jobs.metrics import headline
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.metrics.direction import find_direction, is_validation, list_headline
from trellis_api.jobs.metrics.means import read_mean
from trellis_api.jobs.models import Job, RolloutSample
from trellis_api.jobs.rollouts import service as rollouts
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.rollouts.schemas import RolloutRead, Split
from trellis_api.jobs.timing.clock import read_clocks

MAX_JOBS = 20
#: Metrics in the table where none are named.
_MAX_DEFAULT_METRICS = 30
#: Responses of one job to one prompt.
_MAX_RESPONSES = 4
#: Steps to choose from: more are no list to look through.
_MOST_STEPS = 500


def read_ids(ids: Sequence[str]) -> list[str]:
    """Read ids without duplicates, in order; ``InvalidComparison`` for none, too many, or a malformed id."""
    found = split_ids(ids)
    if not 1 <= len(found) <= MAX_JOBS:
        raise InvalidComparison(f"Name 1 to {MAX_JOBS} jobs; these are {len(found)}.")
    wrong = next((name for name in found if not is_id(name, prefix="job")), None)
    if wrong is not None:
        raise InvalidComparison(f"'{wrong[:80]}' is not the id of a job.")
    return found


def read_groups(groups: Sequence[str]) -> list[list[str]]:
    """Read groups of ids; ``InvalidComparison`` for a single job, and for more than may be named."""
    found = [read_ids([group]) for group in groups]
    if any(len(ids) < 2 for ids in found):
        raise InvalidComparison("A group has two jobs or more.")
    read_ids(groups)
    return found


def find_jobs(session: Session, *, ids: Sequence[str]) -> list[Job]:
    """Return those jobs that exist, in the order requested; ``JobNotFound`` if none does."""
    found = repository.map_jobs(session, job_ids=ids)
    if not found:
        raise JobNotFound(ids[0])
    return [found[each] for each in ids if each in found]


def compare(session: Session, *, ids: Sequence[str], keys: Sequence[str] | None) -> JobComparison:
    """Return settings that differ, and last and best of ``keys`` (None: headline and validation metrics)."""
    jobs = find_jobs(session, ids=ids)
    reads = presentation.present_all(session, jobs=jobs)
    for job, read in zip(jobs, reads, strict=True):
        read.resumes = presentation.list_resumes(session, job=job)
        read.alarms = presentation.list_alarms(session, job=job)
    settings = parameters.describe(session, jobs=jobs, reads=reads)
    series = headline.find_many(session.connection(), jobs=jobs, keys=None)
    counts = Counter(key for own in series.values() for key in own)
    shown = list(keys) if keys is not None else _choose(jobs, counts)
    wanted = [own[key] for own in series.values() for key in shown if key in own]
    summaries = headline.read_summaries(session.connection(), wanted)
    return JobComparison(
        jobs=reads,
        missing=[each for each in ids if each not in {job.id for job in jobs}],
        parameters=parameters.list_differing(settings),
        metric_keys=[
            MetricChoice(key=key, run_count=count)
            for key, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        ],
        metrics=[
            ComparedMetric(
                key=key,
                mode=find_direction(key, jobs=jobs),
                values={
                    job.id: summaries[series[job.id][key].id]
                    for job in jobs
                    if key in series[job.id] and series[job.id][key].id in summaries
                },
            )
            for key in shown
            if key in counts
        ],
        seed_groups=parameters.group_by_seed(session, settings=settings, jobs=jobs),
    )


def read_curves(
    session: Session,
    *,
    ids: Sequence[str],
    keys: Sequence[str],
    max_points: int,
    from_step: int | None,
    to_step: int | None,
    with_clock: bool,
) -> ComparedCurves:
    """Return the curves of the named metrics, each downsampled with its extremes kept."""
    jobs = find_jobs(session, ids=ids)
    clocks = read_clocks(
        session,
        jobs=jobs if with_clock else [],
        max_points=max_points,
        from_step=from_step,
        to_step=to_step,
    )
    runs = []
    for job in jobs:
        curves = metric_query.read_curves(
            session, job=job, keys=keys, max_points=max_points, from_step=from_step, to_step=to_step
        )
        series = [results.present_curve(curve) for curve in curves]
        clock = results.present_clock(clocks.get(job.id))
        runs.append(RunCurves(job_id=job.id, series=series, clock=clock))
    return ComparedCurves(runs=runs)


def read_means(
    session: Session,
    *,
    groups: Sequence[Sequence[str]],
    keys: Sequence[str],
    max_points: int,
    from_step: int | None,
    to_step: int | None,
) -> ComparedMeans:
    """Return the means of groups that have two jobs or more; jobs that were deleted are left out."""
    jobs = find_jobs(session, ids=list(dict.fromkeys(each for ids in groups for each in ids)))
    connection = session.connection()
    series = headline.find_many(connection, jobs=jobs, keys=keys)
    known = {job.id for job in jobs}
    answer = []
    for group in groups:
        ids = [each for each in group if each in known]
        found = []
        for key in dict.fromkeys(keys):
            own = [series[each][key] for each in ids if key in series[each]]
            if len(own) < 2 or len(own) < len(ids):
                continue
            mean = read_mean(
                connection,
                series=own,
                max_points=max_points,
                from_step=from_step or 0,
                to_step=to_step,
            )
            if mean is not None:
                found.append(
                    MeanSeries(
                        key=key,
                        steps=mean.steps,
                        means=mean.means,
                        deviations=mean.deviations,
                        stride=mean.stride,
                    )
                )
        answer.append(GroupMeans(job_ids=ids, series=found))
    return ComparedMeans(groups=answer)


def read_rollouts(
    session: Session, *, ids: Sequence[str], split: Split, step: int | None, limit: int, offset: int
) -> ComparedRollouts:
    """Read responses to the prompts that all jobs with responses share, at ``step`` or each newest."""
    jobs = find_jobs(session, ids=ids)
    newest = {
        job.id: rollout_store.find_newest_step(session, job_id=job.id, split=split, at=step) for job in jobs
    }
    steps = {job_id: found for job_id, found in newest.items() if found is not None}
    without = [job_id for job_id in newest if job_id not in steps]
    # Choices for the page as a whole, which asks for them with its first prompts.
    available = _list_available(session, job_ids=list(newest), split=split) if offset == 0 else []
    if not steps:
        return ComparedRollouts(
            split=split, steps={}, available_steps=available, without=without, total=0, items=[]
        )
    is_shown = _at_steps(steps, split)
    common = (
        select(RolloutSample.prompt)
        .where(is_shown)
        .group_by(RolloutSample.prompt)
        .having(func.count(func.distinct(RolloutSample.job_id)) == len(steps))
    )
    total = session.exec(select(func.count()).select_from(common.subquery())).one()
    page = common.order_by(func.min(RolloutSample.id)).limit(limit).offset(offset)
    prompts = list(session.exec(page))
    items = [_read_prompt(session, prompt, is_shown, list(steps)) for prompt in prompts]
    return ComparedRollouts(
        split=split, steps=steps, available_steps=available, without=without, total=total, items=items
    )


def _list_available(session: Session, *, job_ids: Sequence[str], split: Split) -> list[int]:
    steps = {
        step
        for job_id in job_ids
        for step in rollout_store.list_newest_steps(session, job_id=job_id, split=split, limit=_MOST_STEPS)
    }
    return sorted(steps)[-_MOST_STEPS:]


def _read_prompt(
    session: Session, prompt: str, is_shown: ColumnElement[bool], job_ids: Sequence[str]
) -> PromptResponses:
    statement = select(RolloutSample.id, RolloutSample.job_id).where(is_shown, RolloutSample.prompt == prompt)
    ids: dict[str, list[int]] = {job_id: [] for job_id in job_ids}
    for number, job_id in session.exec(statement.order_by(col(RolloutSample.id))):
        ids[job_id].append(number or 0)
    chosen = [number for own in ids.values() for number in own[:_MAX_RESPONSES]]
    responses: dict[str, list[RolloutRead]] = {job_id: [] for job_id in job_ids}
    for row in rollout_store.read(session, ids=chosen):
        # Numbered among the responses to this prompt: the step's own order says nothing beside another job.
        number = ids[row.job_id].index(row.id or 0) + 1
        responses[row.job_id].append(rollouts.present_rollout(row, {row.id or 0: number}))
    return PromptResponses(prompt=prompt, responses=responses)


def _at_steps(steps: dict[str, int], split: Split) -> ColumnElement[bool]:
    places = (
        and_(col(RolloutSample.job_id) == job_id, col(RolloutSample.step) == step)
        for job_id, step in steps.items()
    )
    return and_(col(RolloutSample.split) == split, or_(*places))


def _choose(jobs: Sequence[Job], counts: Counter[str]) -> list[str]:
    """Choose the headline metrics of the jobs' recipes, then the validation metrics of the most jobs."""
    first = [key for job in jobs for key in list_headline(job.recipe) if key in counts]
    others = sorted((key for key in counts if is_validation(key)), key=lambda key: (-counts[key], key))
    return list(dict.fromkeys([*first, *others]))[:_MAX_DEFAULT_METRICS]
