"""``/evaluations/compare``, ``/leaderboard`` and ``/history``: scores beside each other."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from trellis_contracts.evaluation import LABEL

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.texts import NO_NUL
from trellis_api.evaluations import comparing, ranking
from trellis_api.evaluations.errors import HistoryOfWhat
from trellis_api.evaluations.ranking import Which
from trellis_api.evaluations.schemas import ComparisonRead, HistoryRead, LeaderboardRead

router = APIRouter(prefix="/evaluations", tags=["evaluations"], responses={401: ERROR_RESPONSES[401]})
Responses = dict[int | str, dict[str, Any]]
CONFLICT: Responses = {404: ERROR_RESPONSES[404], 409: ERROR_RESPONSES[409]}
EvaluationId = Annotated[str, Query(description="A finished evaluation.", pattern=id_pattern("ev"))]
Label = Annotated[str | None, Query(pattern=LABEL, description="Of the benchmark.")]
DatasetId = Annotated[
    str | None,
    Query(pattern=id_pattern("ds"), description="Of a custom benchmark; one label may have several."),
]
Metric = Annotated[str | None, Query(max_length=200, pattern=NO_NUL, description="Default the headline.")]
ModelId = Annotated[str | None, Query(pattern=id_pattern("mdl"), description="The model and its ancestors.")]
JobId = Annotated[str | None, Query(pattern=id_pattern("job"), description="The job's checkpoints.")]


@router.get("/compare", summary="Compare two evaluations", responses=CONFLICT)
def compare_evaluations(
    a: EvaluationId, b: EvaluationId, database: DatabaseDep, settings: SettingsDep
) -> ComparisonRead:
    """B minus A on shared problems: the difference with its interval and a paired test."""
    with database.read() as session:
        pair = comparing.find_pair(session, a=a, b=b)
    return comparing.compare(settings, pair)


@router.get("/leaderboard", summary="Rank models and checkpoints")
def read_leaderboard(
    session: ReadSession,
    label: Label = None,
    dataset: DatasetId = None,
    metric: Metric = None,
    configuration: Annotated[
        str | None, Query(max_length=64, pattern=NO_NUL, description="Default that of most evaluations.")
    ] = None,
    which: Annotated[Which, Query(description="Which score if a target was evaluated repeatedly.")] = "best",
) -> LeaderboardRead:
    """One score per target, best first; only comparable measurements."""
    return ranking.read_leaderboard(
        session, label=label, dataset=dataset, metric=metric, configuration=configuration, which=which
    )


@router.get("/history", summary="Scores over versions and steps", responses={422: ERROR_RESPONSES[422]})
def read_history(
    session: ReadSession,
    model: ModelId = None,
    job: JobId = None,
    label: Label = None,
    metric: Metric = None,
) -> HistoryRead:
    """For a model and its ancestors, or for a job's checkpoints."""
    if (model is None) == (job is None):
        raise HistoryOfWhat("Name a model or a job, one of the two.")
    return ranking.read_history(session, model_id=model, job_id=job, label=label, metric=metric)
