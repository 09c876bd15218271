"""The leaderboard of one benchmark: scores that were measured alike, best first."""

from collections.abc import Sequence

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
    LeaderboardConfiguration,
    LeaderboardRead,
    RankedScore,
)
from trellis_api.jobs.metrics.direction import suit_mode


def read_leaderboard(
    session: Session,
    *,
    label: str | None,
    dataset: str | None = None,
    metric: str | None,
    configuration: str | None,
    which: Which,
) -> LeaderboardRead:
    """Read one score of each model and checkpoint, best first, all measured in the same way.

    Without a label, that of which most was measured; without a dataset, the one that this label most often
    stands for; without a metric, its headline; without a configuration, that of most targets.
    """
    benchmarks = list_benchmarks(session)
    label = label or (benchmarks[0].label if benchmarks else None)
    own = next((each for each in benchmarks if each.label == label and _is_on(each, dataset)), None)
    metric = metric or (own.metrics[0] if own else None)
    mode = suit_mode(metric) if metric else "max"
    configurations: list[LeaderboardConfiguration] = []
    rows: Sequence[EvaluationScore] = []
    if label and metric:
        measured = own.dataset.id if own and own.dataset else dataset
        wanted = of_benchmark(label, dataset_id=measured, metric=metric)
        configurations = list_configurations(session, wanted, label=label)
        configuration = configuration or (configurations[0].id if configurations else None)
        if configuration:
            rows = choose_scores(session, wanted, configuration=configuration, which=which, mode=mode)
    targets = presentation.map_targets(session, evaluations=list_evaluations(session, rows))
    return LeaderboardRead(
        label=label,
        dataset=own.dataset if own else None,
        metric=metric,
        mode=mode,
        configuration=configuration,
        items=[
            RankedScore(
                rank=rank,
                evaluation_id=row.evaluation_id,
                target=targets[row.evaluation_id],
                score=as_score(row),
                configuration=row.configuration,
                created_at=row.created_at,
            )
            for rank, row in rank_scores(rows)
        ],
        benchmarks=benchmarks,
        configurations=configurations,
    )


def _is_on(benchmark: LeaderboardBenchmark, dataset: str | None) -> bool:
    return dataset is None or (benchmark.dataset is not None and benchmark.dataset.id == dataset)
