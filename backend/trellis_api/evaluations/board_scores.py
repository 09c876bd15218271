"""Which scores stand on a board: of what there are any, how they were measured, and one of each target."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from sqlalchemy import ColumnElement, Integer, Select, cast, func, select
from sqlmodel import Session, col
from trellis_contracts.evaluation import Score

from trellis_api.evaluations import repository
from trellis_api.evaluations.measured import map_datasets_of_scores, map_measured_datasets
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.evaluations.orders import EvaluationRequest
from trellis_api.evaluations.schemas import LeaderboardBenchmark, LeaderboardConfiguration

#: Nobody reads more, and it has to end.
MOST_RANKED, MOST_BENCHMARKS, MOST_CONFIGURATIONS = 200, 500, 50
Which = Literal["best", "newest"]
IS_WHOLE = col(EvaluationScore.group_kind).is_(None)
_TARGET = (
    col(EvaluationScore.target_model_id),
    col(EvaluationScore.target_job_id),
    col(EvaluationScore.target_step),
)


def list_benchmarks(session: Session) -> list[LeaderboardBenchmark]:
    """List the benchmarks with scores, the most measured first, each with its metrics, the headline first.

    One label on two datasets is two benchmarks.
    """
    label, benchmark = col(EvaluationScore.label), col(EvaluationScore.benchmark)
    dataset, metric = col(EvaluationScore.dataset_id), col(EvaluationScore.metric)
    # Of a benchmark's metrics that which is most often measured stands for how often it was.
    times = func.max(func.count()).over(partition_by=(label, dataset))
    headlines = func.sum(cast(col(EvaluationScore.is_headline), Integer))
    statement = (
        select(label, benchmark, dataset, metric, func.max(col(EvaluationScore.evaluation_id)))
        .where(IS_WHOLE)
        .group_by(label, benchmark, dataset, metric)
        .order_by(times.desc(), label, dataset, headlines.desc(), metric)
        .limit(MOST_BENCHMARKS)
    )
    rows = session.execute(statement).all()
    names = map_datasets_of_scores(session, evaluation_ids=[row[4] for row in rows if row[2] is not None])
    found: dict[tuple[str, str | None], LeaderboardBenchmark] = {}
    for name, of, dataset_id, measured, example in rows:
        entry = found.get((name, dataset_id))
        if entry is None:
            shown = names.get(example, {}).get(name)
            # Its scores may be of several versions.
            shown = shown.model_copy(update={"version": None}) if shown else None
            entry = LeaderboardBenchmark(label=name, benchmark=of, dataset=shown, metrics=[])
            found[name, dataset_id] = entry
        if measured not in entry.metrics:
            entry.metrics.append(measured)
    return list(found.values())


def list_configurations(
    session: Session, wanted: Sequence[ColumnElement[bool]], *, label: str
) -> list[LeaderboardConfiguration]:
    """List the setups in which it was measured, the one with the most targets first."""
    evaluation_id, created_at = col(EvaluationScore.evaluation_id), col(EvaluationScore.created_at)
    configuration = col(EvaluationScore.configuration)
    times, newest = func.count(evaluation_id.distinct()), func.max(created_at)
    statement = (
        select(configuration, times, newest, func.max(evaluation_id))
        .where(*wanted)
        .group_by(configuration)
        .order_by(times.desc(), newest.desc(), configuration)
        .limit(MOST_CONFIGURATIONS)
    )
    ways = session.execute(statement).all()
    examples = repository.list_by_ids(session, evaluation_ids=[way[3] for way in ways])
    rows = {row.id: row for row in examples}
    datasets = map_measured_datasets(session, evaluations=examples)
    found = []
    for found_configuration, count, newest_at, example in ways:
        row = rows.get(example)
        request = EvaluationRequest.model_validate(row.request) if row else None
        order = next((each for each in request.benchmarks if each.label == label), None) if request else None
        if request is None or order is None:
            continue
        found.append(
            LeaderboardConfiguration(
                id=found_configuration,
                evaluations=count,
                newest_at=newest_at,
                order=order,
                dataset=datasets[example].get(label),
                seed=request.seed,
            )
        )
    return found


def of_benchmark(label: str, *, dataset_id: str | None, metric: str) -> tuple[ColumnElement[bool], ...]:
    """Build the conditions for the scores over all problems of a benchmark on a dataset, in one metric."""
    return (
        col(EvaluationScore.label) == label,
        col(EvaluationScore.dataset_id).is_not_distinct_from(dataset_id),
        col(EvaluationScore.metric) == metric,
        IS_WHOLE,
    )


def choose_scores(
    session: Session,
    wanted: Sequence[ColumnElement[bool]],
    *,
    configuration: str,
    which: Which,
    mode: Literal["max", "min"],
) -> Sequence[EvaluationScore]:
    """Choose one score per target, all measured with one configuration, best targets first."""
    value = col(EvaluationScore.value)
    by_value, by_time = (value if mode == "min" else value.desc()), col(EvaluationScore.created_at).desc()
    order = (by_value, by_time) if which == "best" else (by_time, by_value)
    place = (
        func.row_number()
        .over(partition_by=_TARGET, order_by=(*order, col(EvaluationScore.id)))
        .label("place")
    )
    is_alike = col(EvaluationScore.configuration) == configuration
    placed = select(col(EvaluationScore.id), place).where(*wanted, is_alike).subquery()
    statement: Select[Any] = (
        select(EvaluationScore)
        .join(placed, placed.c.id == col(EvaluationScore.id))
        .where(placed.c.place == 1)
        .order_by(by_value, by_time, col(EvaluationScore.id))
    )
    return session.execute(statement.limit(MOST_RANKED)).scalars().all()


def rank_scores(
    scores: Sequence[EvaluationScore],
) -> Iterator[tuple[int, EvaluationScore]]:
    """Yield each score with its rank, from 1; equal scores share a rank. ``scores`` come best first."""
    rank, last = 1, None
    for place, row in enumerate(scores, start=1):
        if row.value != last:
            rank, last = place, row.value
        yield rank, row


def list_evaluations(session: Session, rows: Sequence[EvaluationScore]) -> Sequence[Evaluation]:
    return repository.list_by_ids(session, evaluation_ids={row.evaluation_id for row in rows})


def as_score(row: EvaluationScore) -> Score:
    fields = ("metric", "value", "stderr", "low", "high", "method", "n")
    return Score.model_validate({name: getattr(row, name) for name in fields})
