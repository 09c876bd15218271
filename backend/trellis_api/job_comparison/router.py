"""``/jobs/compare``: runs side by side. Stands before the routes with a job's id."""

from typing import Annotated

from fastapi import APIRouter, Query

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.job_comparison import evaluations, seeds, service
from trellis_api.job_comparison.errors import InvalidComparison
from trellis_api.job_comparison.schemas import (
    ComparedCurves,
    ComparedEvaluations,
    ComparedMeans,
    ComparedRollouts,
    ComparedSeeds,
    JobComparison,
    Take,
)
from trellis_api.jobs.rollouts.pages import MAX_STEP
from trellis_api.jobs.rollouts.schemas import Split
from trellis_api.jobs.schemas import MetricKeyText

router = APIRouter(
    prefix="/jobs/compare",
    tags=["jobs"],
    responses={status: ERROR_RESPONSES[status] for status in (401, 404, 422)},
)
Ids = Annotated[list[str], Query(description="Ids of 1 to 20 jobs, repeated or separated by commas.")]


@router.get("", summary="Compare jobs")
def compare_jobs(
    session: ReadSession,
    ids: Ids,
    keys: Annotated[
        list[MetricKeyText] | None,
        Query(description="Metrics of the table; default headline and validation metrics.", max_length=100),
    ] = None,
) -> JobComparison:
    """Return the settings that differ, newest and best values, and which jobs differ only in the seed."""
    return service.compare(session, ids=service.read_ids(ids), keys=keys)


@router.get("/metrics", summary="Curves of several jobs")
def read_compared_curves(
    session: ReadSession,
    ids: Ids,
    keys: Annotated[
        list[MetricKeyText], Query(description="Metric keys, one per parameter.", min_length=1, max_length=20)
    ],
    max_points: Annotated[int, Query(ge=10, le=2000, description="Maximum points per curve.")] = 400,
    from_step: Annotated[int | None, Query(ge=0, le=MAX_STEP)] = None,
    to_step: Annotated[int | None, Query(ge=0, le=MAX_STEP)] = None,
    clock: Annotated[
        bool, Query(description="With the time and tokens up to the steps, and when they ended.")
    ] = False,
) -> ComparedCurves:
    """Return the curves; long ones are downsampled to the minimum and maximum of each bucket."""
    return service.read_curves(
        session,
        ids=service.read_ids(ids),
        keys=keys,
        max_points=max_points,
        from_step=from_step,
        to_step=to_step,
        with_clock=clock,
    )


@router.get("/means", summary="Mean curves of groups of jobs")
def read_means(
    session: ReadSession,
    groups: Annotated[
        list[str],
        Query(
            description="Ids of two jobs or more, separated by commas; one parameter per group.",
            min_length=1,
            max_length=service.MAX_JOBS // 2,
        ),
    ],
    keys: Annotated[
        list[MetricKeyText], Query(description="Metric keys, one per parameter.", min_length=1, max_length=20)
    ],
    max_points: Annotated[int, Query(ge=10, le=2000, description="Maximum points per curve.")] = 400,
    from_step: Annotated[int | None, Query(ge=0, le=MAX_STEP)] = None,
    to_step: Annotated[int | None, Query(ge=0, le=MAX_STEP)] = None,
) -> ComparedMeans:
    """Return mean and standard deviation over the jobs of each group, at steps that all of them have.

    Both are those of single steps; of a long curve, evenly spaced ones.
    """
    return service.read_means(
        session,
        groups=service.read_groups(groups),
        keys=keys,
        max_points=max_points,
        from_step=from_step,
        to_step=to_step,
    )


@router.get("/seeds", summary="Compare groups of seeds")
def compare_seeds(
    database: DatabaseDep,
    ids: Ids,
    baseline: Annotated[str | None, Query(max_length=64, description="Default the first job.")] = None,
    metric: Annotated[
        MetricKeyText | None, Query(description="Default the first shared validation or headline metric.")
    ] = None,
    take: Annotated[Take | None, Query(description="Default best for validation metrics, else last.")] = None,
) -> ComparedSeeds:
    """Group jobs that differ only in the seed, and test each group against the baseline's group."""
    wanted = service.read_ids(ids)
    with database.read() as session:
        measured = seeds.measure(session, ids=wanted, baseline=baseline, metric=metric, take=take)
    return seeds.compare(measured)


@router.get(
    "/evaluations",
    summary="Compare evaluations of jobs with a baseline",
    responses={409: ERROR_RESPONSES[409]},
)
def compare_evaluations_of_jobs(
    database: DatabaseDep,
    settings: SettingsDep,
    ids: Ids,
    baseline: Annotated[str | None, Query(max_length=64, description="Default the first job.")] = None,
) -> ComparedEvaluations:
    """Return the difference and a paired test for every shared benchmark."""
    wanted = service.read_ids(ids)
    with database.read() as session:
        job_ids = [job.id for job in service.find_jobs(session, ids=wanted)]
        found = evaluations.find_evaluations(session, job_ids=job_ids)
    chosen = baseline or job_ids[0]
    if chosen not in job_ids:
        raise InvalidComparison("The baseline is not among the jobs.")
    return evaluations.compare(settings, found=found, job_ids=job_ids, baseline=chosen)


@router.get("/rollouts", summary="Responses of several jobs to the same prompts")
def compare_rollouts(
    session: ReadSession,
    ids: Ids,
    split: Split = "validation",
    step: Annotated[int | None, Query(ge=0, le=MAX_STEP, description="Default the newest of each.")] = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 5,
    offset: Annotated[int, Query(ge=0, le=MAX_STEP)] = 0,
) -> ComparedRollouts:
    """Return only shared prompts, with up to four responses of each job per prompt."""
    return service.read_rollouts(
        session, ids=service.read_ids(ids), split=split, step=step, limit=limit, offset=offset
    )
