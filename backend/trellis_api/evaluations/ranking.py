"""The platform's scores: the board of one benchmark, and how scores went over versions and steps."""

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import ColumnElement, Integer, Select, cast, func, select
from sqlmodel import Session, col
from trellis_contracts.evaluation import Score

from trellis_api.evaluations import presentation, repository
from trellis_api.evaluations.measured import map_datasets_of_scores, map_measured_datasets
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.evaluations.orders import EvaluationRequest
from trellis_api.evaluations.schemas import (
    HistoryPoint,
    HistoryRead,
    LeaderboardBenchmark,
    LeaderboardConfiguration,
    LeaderboardRead,
    RankedScore,
)
from trellis_api.jobs.best import suit_mode
from trellis_api.models.repository import find_model
from trellis_api.models.schemas import Lineage

#: Nobody reads more, and it has to end.
MOST_RANKED, MOST_POINTS, MOST_BENCHMARKS, MOST_CONFIGURATIONS = 200, 2_000, 500, 50
Which = Literal["best", "newest"]
_IS_WHOLE = col(EvaluationScore.group_kind).is_(None)
_TARGET = (
    col(EvaluationScore.target_model_id),
    col(EvaluationScore.target_job_id),
    col(EvaluationScore.target_step),
)


def read_leaderboard(
    session: Session,
    *,
    label: str | None,
    dataset: str | None = None,
    metric: str | None,
    configuration: str | None,
    which: Which,
) -> LeaderboardRead:
    """One score of each model and checkpoint, best first, all measured in the same way.

    Without a label, that of which most was measured; without a dataset, the one that this label most often
    stands for; without a metric, its headline; without a configuration, that of most targets.
    """
    benchmarks = _list_benchmarks(session)
    label = label or (benchmarks[0].label if benchmarks else None)
    own = next((each for each in benchmarks if each.label == label and _is_on(each, dataset)), None)
    metric = metric or (own.metrics[0] if own else None)
    measured = own.dataset.id if own and own.dataset else dataset
    wanted: tuple[ColumnElement[bool], ...] = (
        col(EvaluationScore.label) == label,
        col(EvaluationScore.dataset_id).is_not_distinct_from(measured),
        col(EvaluationScore.metric) == metric,
        _IS_WHOLE,
    )
    configurations = _list_configurations(session, wanted, label=label) if label and metric else []
    configuration = configuration or (configurations[0].id if configurations else None)
    mode = suit_mode(metric) if metric else "max"
    rows: Sequence[EvaluationScore] = []
    if label and metric and configuration:
        is_alike = col(EvaluationScore.configuration) == configuration
        rows = _choose_scores(session, (*wanted, is_alike), which=which, mode=mode)
    targets = presentation.map_targets(session, evaluations=_list_evaluations(session, rows))
    return LeaderboardRead(
        label=label,
        dataset=own.dataset if own else None,
        metric=metric,
        mode=mode,
        configuration=configuration,
        items=[
            RankedScore(
                rank=1 + sum(1 for other in rows if _is_better(other.value, row.value, mode)),
                evaluation_id=row.evaluation_id,
                target=targets[row.evaluation_id],
                score=_as_score(row),
                configuration=row.configuration,
                created_at=row.created_at,
            )
            for row in rows
        ],
        benchmarks=benchmarks,
        configurations=configurations,
    )


def read_history(
    session: Session, *, model_id: str | None, job_id: str | None, label: str | None, metric: str | None
) -> HistoryRead:
    """Scores in the order of the trainings that led from one to the next, and of their steps.

    Of a model: its own, and those of the checkpoints and models that it was made from. Of a job: those of
    its checkpoints. Headlines only, unless a metric is named.
    """
    ways = _find_ways(session, model_id=model_id, job_id=job_id)
    points: list[tuple[int, EvaluationScore]] = []
    for generation, condition in enumerate(ways):
        found = select(EvaluationScore).where(*condition, _IS_WHOLE)
        if label is not None:
            found = found.where(col(EvaluationScore.label) == label)
        is_wanted = col(EvaluationScore.metric) == metric if metric else col(EvaluationScore.is_headline)
        order = (func.coalesce(col(EvaluationScore.target_step), 0), col(EvaluationScore.created_at))
        rows = session.execute(found.where(is_wanted).order_by(*order).limit(MOST_POINTS)).scalars()
        points += [(generation, row) for row in rows]
    points = points[-MOST_POINTS:]
    evaluations = _list_evaluations(session, [row for _, row in points])
    targets = presentation.map_targets(session, evaluations=evaluations)
    datasets = map_measured_datasets(session, evaluations=evaluations)
    return HistoryRead(
        items=[
            HistoryPoint(
                generation=generation,
                evaluation_id=row.evaluation_id,
                target=targets[row.evaluation_id],
                label=row.label,
                benchmark=row.benchmark,
                dataset=datasets[row.evaluation_id].get(row.label),
                score=_as_score(row),
                configuration=row.configuration,
                created_at=row.created_at,
            )
            for generation, row in points
        ]
    )


def _find_ways(
    session: Session, *, model_id: str | None, job_id: str | None
) -> list[tuple[ColumnElement[bool], ...]]:
    """Whose scores, oldest ancestor first: models, and checkpoints up to the one that went on."""
    if job_id is not None:
        return [(col(EvaluationScore.target_job_id) == job_id,)]
    ways: list[tuple[ColumnElement[bool], ...]] = [(col(EvaluationScore.target_model_id) == model_id,)]
    model = find_model(session, model_id=model_id) if model_id else None
    lineage = Lineage.model_validate(model.lineage) if model is not None else None
    for training in (lineage, *lineage.ancestors) if lineage is not None else ():
        if training.job_id is not None:
            is_before = col(EvaluationScore.target_step) <= (training.step or 0)
            ways.append((col(EvaluationScore.target_job_id) == training.job_id, is_before))
        if training.model_id is not None:
            ways.append((col(EvaluationScore.target_model_id) == training.model_id,))
    return ways[::-1]


def _choose_scores(
    session: Session, wanted: Sequence[ColumnElement[bool]], *, which: Which, mode: Literal["max", "min"]
) -> Sequence[EvaluationScore]:
    """Of each target one score, the best targets first."""
    value = col(EvaluationScore.value)
    by_value, by_time = (value if mode == "min" else value.desc()), col(EvaluationScore.created_at).desc()
    order = (by_value, by_time) if which == "best" else (by_time, by_value)
    place = (
        func.row_number()
        .over(partition_by=_TARGET, order_by=(*order, col(EvaluationScore.id)))
        .label("place")
    )
    placed = select(col(EvaluationScore.id), place).where(*wanted).subquery()
    statement: Select[Any] = (
        select(EvaluationScore)
        .join(placed, placed.c.id == col(EvaluationScore.id))
        .where(placed.c.place == 1)
        .order_by(by_value, by_time, col(EvaluationScore.id))
    )
    return session.execute(statement.limit(MOST_RANKED)).scalars().all()


def _list_benchmarks(session: Session) -> list[LeaderboardBenchmark]:
    """What there are scores of, the most measured first; of each its metrics, the headline first.

    One label on two datasets is two benchmarks.
    """
    label, benchmark = col(EvaluationScore.label), col(EvaluationScore.benchmark)
    dataset, metric = col(EvaluationScore.dataset_id), col(EvaluationScore.metric)
    # Of a benchmark's metrics that which is most often measured stands for how often it was.
    times = func.max(func.count()).over(partition_by=(label, dataset))
    headlines = func.sum(cast(col(EvaluationScore.is_headline), Integer))
    statement = (
        select(label, benchmark, dataset, metric, func.max(col(EvaluationScore.evaluation_id)))
        .where(_IS_WHOLE)
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


def _is_on(benchmark: LeaderboardBenchmark, dataset: str | None) -> bool:
    return dataset is None or (benchmark.dataset is not None and benchmark.dataset.id == dataset)


def _list_configurations(
    session: Session, wanted: Sequence[ColumnElement[bool]], *, label: str
) -> list[LeaderboardConfiguration]:
    """The ways in which it was measured, that of most targets first."""
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


def _list_evaluations(session: Session, rows: Sequence[EvaluationScore]) -> Sequence[Evaluation]:
    return repository.list_by_ids(session, evaluation_ids={row.evaluation_id for row in rows})


def _is_better(one: float, other: float, mode: Literal["max", "min"]) -> bool:
    return one > other if mode == "max" else one < other


def _as_score(row: EvaluationScore) -> Score:
    fields = ("metric", "value", "stderr", "low", "high", "method", "n")
    return Score.model_validate({name: getattr(row, name) for name in fields})
