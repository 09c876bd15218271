"""Models and checkpoints by benchmarks."""

import time
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import insert
from sqlmodel import select
from trellis_api.core.database import Database
from trellis_api.evaluations.matrix import MOST_COLUMNS, MOST_ROWS
from trellis_api.evaluations.models import EvaluationScore
from trellis_api.models.models import Model

GOOD, POOR = (1.0, 1.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0)
GSM8K, MATH = {"benchmark": "gsm8k"}, {"benchmark": "math500"}


def read(client: TestClient, **query: Any) -> Any:
    response = client.get("/api/v1/evaluations/matrix", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def evaluations_of(row: dict[str, Any]) -> list[str | None]:
    return [cell["evaluation_id"] if cell else None for cell in row["cells"]]


def test_a_row_has_a_cell_for_each_benchmark_and_none_where_it_was_not_measured(
    client: TestClient, measure: Any, model: Model, checkpoint: dict[str, Any]
) -> None:
    both = measure(POOR, GSM8K, MATH)
    better = measure(GOOD, GSM8K, targets=[checkpoint])

    found = read(client)

    assert [column["benchmark"]["label"] for column in found["columns"]] == ["gsm8k", "math500"]
    assert [column["metric"] for column in found["columns"]] == ["strict", "strict"]
    whole, partial = found["rows"]
    assert (whole["target"]["model"]["id"], evaluations_of(whole)) == (model.id, [both, both])
    assert (partial["target"]["step"], evaluations_of(partial)) == (checkpoint["step"], [better, None])
    assert [row["cells"][0]["rank"] for row in found["rows"]] == [2, 1]
    assert whole["cells"][0]["score"]["low"] is not None
    assert (found["more_columns"], found["more_rows"]) == (0, 0)


def test_a_column_shows_one_way_of_measuring_and_counts_the_others(
    client: TestClient, measure: Any, checkpoint: dict[str, Any]
) -> None:
    shown = {measure(POOR, GSM8K), measure(POOR, GSM8K, targets=[checkpoint])}
    measure(GOOD, {**GSM8K, "shots": 5})

    found = read(client)

    (column,) = found["columns"]
    assert (column["configuration"]["evaluations"], column["other_evaluations"]) == (2, 1)
    assert {row["cells"][0]["evaluation_id"] for row in found["rows"]} == shown


def test_of_repeated_measurements_the_best_or_the_newest_is_shown(client: TestClient, measure: Any) -> None:
    best, newest = measure(GOOD, GSM8K), measure(POOR, GSM8K)

    assert evaluations_of(read(client)["rows"][0]) == [best]
    assert evaluations_of(read(client, which="newest")["rows"][0]) == [newest]


def test_a_platform_without_scores_has_an_empty_matrix(client: TestClient) -> None:
    assert read(client) == {"columns": [], "rows": [], "more_columns": 0, "more_rows": 0}


def test_a_matrix_over_many_scores_is_bounded_and_quick(
    client: TestClient, database: Database, measure: Any
) -> None:
    labels, models = [f"b{place:02}" for place in range(MOST_COLUMNS + 2)], MOST_ROWS + 100
    measure(POOR, *({**GSM8K, "label": label} for label in labels))
    with database.write() as session:
        examples = session.exec(select(EvaluationScore).where(EvaluationScore.metric == "strict")).all()
        session.execute(
            insert(EvaluationScore),
            [
                {
                    **example.model_dump(exclude={"id"}),
                    "target_model_id": f"mdl_{number}",
                    # Other targets lead every column: a column alone has no more of them than there are rows.
                    "value": (number * (place + 1)) % models / models,
                }
                for place, example in enumerate(examples)
                for number in range(models)
            ],
        )

    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        found = read(client)
        seconds.append(time.perf_counter() - began)

    assert (len(found["columns"]), found["more_columns"]) == (MOST_COLUMNS, 2)
    assert (len(found["rows"]), found["more_rows"] > 0) == (MOST_ROWS, True)
    assert min(seconds) < 2.0  # whatever else the machine does
