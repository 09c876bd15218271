"""How scores went over the trainings that led from one model to the next, and over their steps."""

from sqlalchemy import ColumnElement, func, select
from sqlmodel import Session, col

from trellis_api.evaluations import presentation
from trellis_api.evaluations.board_scores import IS_WHOLE, as_score, list_evaluations
from trellis_api.evaluations.measured import map_measured_datasets
from trellis_api.evaluations.models import EvaluationScore
from trellis_api.evaluations.schemas import HistoryPoint, HistoryRead
from trellis_api.models.repository import find_model
from trellis_api.models.schemas import Lineage

#: Nobody reads more, and it has to end.
MOST_POINTS = 2_000


def read_history(
    session: Session, *, model_id: str | None, job_id: str | None, label: str | None, metric: str | None
) -> HistoryRead:
    """Read scores in the order of the trainings that led from one to the next, and of their steps.

    Of a model: its own, and those of the checkpoints and models that it was made from. Of a job: those of
    its checkpoints. Headlines only, unless a metric is named.
    """
    ways = _find_ways(session, model_id=model_id, job_id=job_id)
    points: list[tuple[int, EvaluationScore]] = []
    for generation, condition in enumerate(ways):
        found = select(EvaluationScore).where(*condition, IS_WHOLE)
        if label is not None:
            found = found.where(col(EvaluationScore.label) == label)
        is_wanted = col(EvaluationScore.metric) == metric if metric else col(EvaluationScore.is_headline)
        order = (func.coalesce(col(EvaluationScore.target_step), 0), col(EvaluationScore.created_at))
        rows = session.execute(found.where(is_wanted).order_by(*order).limit(MOST_POINTS)).scalars()
        points += [(generation, row) for row in rows]
    points = points[-MOST_POINTS:]
    evaluations = list_evaluations(session, [row for _, row in points])
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
                score=as_score(row),
                configuration=row.configuration,
                created_at=row.created_at,
            )
            for generation, row in points
        ]
    )


def _find_ways(
    session: Session, *, model_id: str | None, job_id: str | None
) -> list[tuple[ColumnElement[bool], ...]]:
    """Find whose scores to read, oldest ancestor first: models, and checkpoints up to the one continued."""
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
