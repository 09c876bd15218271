"""Models and checkpoints by benchmarks: one score of each pair, a column's scores measured alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session

from trellis_api.evaluations import presentation
from trellis_api.evaluations.board_scores import (
    Which,
    as_score,
    choose_scores,
    list_benchmarks,
    list_configurations,
    list_evaluations,
    of_benchmark,
    rank_scores,
)
from trellis_api.evaluations.models import EvaluationScore
from trellis_api.evaluations.schemas import (
    LeaderboardBenchmark,
    MatrixCell,
    MatrixColumn,
    MatrixRead,
    MatrixRow,
)
from trellis_api.jobs.metrics.direction import suit_mode

#: More fit no screen.
MOST_COLUMNS, MOST_ROWS = 16, 200
#: What tells targets apart: a model, or a job and a step.
_Target = tuple[str | None, str | None, int | None]


@dataclass(frozen=True)
class _Measured:
    """A column and its scores, best first."""

    column: MatrixColumn
    scores: Sequence[EvaluationScore]


def read_matrix(session: Session, *, which: Which) -> MatrixRead:
    """Return the most measured benchmarks and the targets that were measured on them.

    Of a benchmark the headline metric and the setup of most evaluations are shown: scores of other setups
    cannot be compared with these, and are only counted.
    """
    benchmarks = list_benchmarks(session)
    measured = [
        found
        for each in benchmarks[:MOST_COLUMNS]
        if (found := _measure(session, each, which=which)) is not None
    ]
    cells: dict[_Target, list[MatrixCell | None]] = {}
    scores: dict[_Target, EvaluationScore] = {}
    for place, column in enumerate(measured):
        for rank, row in rank_scores(column.scores):
            target = (row.target_model_id, row.target_job_id, row.target_step)
            scores.setdefault(target, row)
            cells.setdefault(target, [None] * len(measured))[place] = MatrixCell(
                rank=rank, evaluation_id=row.evaluation_id, score=as_score(row), created_at=row.created_at
            )
    # Those of the first column come in its order: sorting keeps it among rows with as many scores.
    shown = sorted(cells, key=lambda target: cells[target].count(None))[:MOST_ROWS]
    targets = presentation.map_targets(
        session, evaluations=list_evaluations(session, [scores[target] for target in shown])
    )
    return MatrixRead(
        columns=[each.column for each in measured],
        rows=[
            MatrixRow(target=targets[scores[target].evaluation_id], cells=cells[target]) for target in shown
        ],
        more_columns=max(0, len(benchmarks) - MOST_COLUMNS),
        more_rows=len(cells) - len(shown),
    )


def _measure(session: Session, benchmark: LeaderboardBenchmark, *, which: Which) -> _Measured | None:
    metric = benchmark.metrics[0]
    wanted = of_benchmark(
        benchmark.label, dataset_id=benchmark.dataset.id if benchmark.dataset else None, metric=metric
    )
    configurations = list_configurations(session, wanted, label=benchmark.label)
    if not configurations:
        return None
    configuration, *others = configurations
    column = MatrixColumn(
        benchmark=benchmark,
        metric=metric,
        mode=suit_mode(metric),
        configuration=configuration,
        other_evaluations=sum(each.evaluations for each in others),
    )
    return _Measured(
        column,
        choose_scores(session, wanted, configuration=configuration.id, which=which, mode=column.mode),
    )
