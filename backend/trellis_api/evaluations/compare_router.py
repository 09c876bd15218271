"""``/evaluations/compare``, ``/leaderboard``, ``/matrix`` and ``/history``: scores beside each other."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from trellis_contracts.evaluation import LABEL

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from trellis_api.core.texts import NO_NUL, QueryText
from trellis_api.evaluations import comparing, disagreeing, history, matrix, ranking
from trellis_api.evaluations.board_scores import Which
from trellis_api.evaluations.errors import HistoryOfWhat
from trellis_api.evaluations.schemas import (
    Changed,
    ComparisonRead,
    DisagreementPage,
    HistoryRead,
    LeaderboardRead,
    MatrixRead,
)
from trellis_api.jobs.names import JOBS
from trellis_api.names.resolve import DATASETS, MODELS, find_filter_id

router = APIRouter(prefix="/evaluations", tags=["evaluations"], responses={401: ERROR_RESPONSES[401]})
Responses = dict[int | str, dict[str, Any]]
CONFLICT: Responses = {status: ERROR_RESPONSES[status] for status in (404, 409, 422)}
Ids = Annotated[
    list[str],
    Query(description="2 to 6 finished evaluations, repeated or separated by commas; baseline first."),
]
Label = Annotated[str | None, Query(pattern=LABEL, description="Of the benchmark.")]
DatasetId = Annotated[
    str | None,
    Query(
        max_length=200,
        pattern=NO_NUL,
        description="Of a custom benchmark, by ID or name; one label may have several.",
    ),
]
Metric = Annotated[QueryText | None, Query(description="Default the headline.")]
ModelId = Annotated[
    QueryText | None,
    Query(description="The model, by ID or name, and its ancestors."),
]
WhichScore = Annotated[Which, Query(description="Which score if a target was evaluated repeatedly.")]
JobCalled = Annotated[QueryText | None, Query(description="The job's checkpoints, by ID or name.")]


@router.get("/compare", summary="Compare up to six evaluations", responses=CONFLICT)
def compare_evaluations(ids: Ids, database: DatabaseDep, settings: SettingsDep) -> ComparisonRead:
    """Compare each with the first on shared problems: differences, intervals and corrected paired tests."""
    wanted = comparing.read_ids(ids)
    with database.read() as session:
        chosen = comparing.find_chosen(session, ids=wanted)
    return comparing.compare(settings, chosen)


@router.get("/compare/samples", summary="Samples on which evaluations disagree", responses=CONFLICT)
def list_disagreements(
    ids: Ids,
    label: Annotated[str, Query(pattern=LABEL, description="Of the benchmark.")],
    database: DatabaseDep,
    settings: SettingsDep,
    changed: Annotated[
        Changed, Query(description="Better or worse than the baseline, or any difference.")
    ] = "any",
    evaluation: Annotated[
        str | None, Query(pattern=id_pattern("ev"), description="Only where this one differs.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> DisagreementPage:
    """List the samples in the baseline's order, with every evaluation's answer."""
    wanted = comparing.read_ids(ids)
    with database.read() as session:
        query = disagreeing.DisagreementQuery(
            label=label,
            evaluation_ids=disagreeing.find_having(session, ids=wanted, label=label),
            changed=changed,
            evaluation_id=evaluation,
        )
    return disagreeing.read_page(settings, query, cursor=cursor, limit=limit)


@router.get("/leaderboard", summary="Rank models and checkpoints")
def read_leaderboard(
    session: ReadSession,
    label: Label = None,
    dataset: DatasetId = None,
    metric: Metric = None,
    configuration: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="Default that of most evaluations.")
    ] = None,
    which: WhichScore = "best",
) -> LeaderboardRead:
    """Return one score per target, best first; only comparable measurements."""
    dataset_id = find_filter_id(session, DATASETS, dataset, field="dataset")
    return ranking.read_leaderboard(
        session, label=label, dataset=dataset_id, metric=metric, configuration=configuration, which=which
    )


@router.get("/matrix", summary="Models and checkpoints by benchmarks")
def read_matrix(session: ReadSession, which: WhichScore = "best") -> MatrixRead:
    """Return headline scores on the most measured benchmarks, each in its most common setup."""
    return matrix.read_matrix(session, which=which)


@router.get("/history", summary="Scores over versions and steps", responses={422: ERROR_RESPONSES[422]})
def read_history(
    session: ReadSession,
    model: ModelId = None,
    job: JobCalled = None,
    label: Label = None,
    metric: Metric = None,
) -> HistoryRead:
    """Return scores for a model and its ancestors, or for a job's checkpoints."""
    if (model is None) == (job is None):
        raise HistoryOfWhat("Name a model or a job, one of the two.")
    model_id = find_filter_id(session, MODELS, model, field="model")
    job_id = find_filter_id(session, JOBS, job, field="job")
    return history.read_history(session, model_id=model_id, job_id=job_id, label=label, metric=metric)
