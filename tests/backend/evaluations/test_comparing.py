"""Two evaluations side by side, the board, and scores over steps and versions."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset, DatasetRef, DatasetVersion
from trellis_api.evaluations.folder import evaluation_folder, samples_path
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.jobs import repository as jobs
from trellis_api.jobs.models import Checkpoint
from trellis_api.models.models import Model

BETTER, WORSE = (1.0, 1.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0)


def read(client: TestClient, path: str, **query: Any) -> Any:
    return client.get(f"/api/v1/evaluations/{path}", params=query)


def test_the_second_is_told_against_the_first_problem_by_problem(client: TestClient, measure: Any) -> None:
    a, b = measure(WORSE), measure(BETTER)

    found = read(client, "compare", ids=f"{a},{b}").json()

    (table,) = found["benchmarks"]
    (other,) = table["others"]
    benchmark = other["comparison"]
    assert (found["baseline"], [each["id"] for each in found["evaluations"]]) == (a, [a, b])
    assert (other["evaluation_id"], table["baseline"]["value"], other["p_adjusted"]) == (b, 0.25, 0.5)
    assert (benchmark["a"]["value"], benchmark["b"]["value"], benchmark["difference"]) == (0.25, 0.75, 0.5)
    assert (benchmark["improved"], benchmark["worsened"], benchmark["pairs"]) == (2, 0, 4)
    assert (benchmark["test"], benchmark["p_value"]) == ("mcnemar_exact", 0.5)
    assert benchmark["obstacle"] is None
    assert (found["unshared"], table["missing"]) == ([], [])


def test_settings_that_differ_and_benchmarks_of_one_alone_are_named(client: TestClient, measure: Any) -> None:
    orders = [{"benchmark": "gsm8k"}, {"benchmark": "gsm8k", "label": "other"}]
    a, b = measure(WORSE, *orders), measure(BETTER)

    found = read(client, "compare", ids=[a, b]).json()

    assert [each["label"] for each in found["benchmarks"]] == ["gsm8k"]
    assert found["unshared"] == [{"label": "other", "evaluations": [a]}]


def test_a_parent_in_float32_and_its_export_in_bfloat16_are_not_measured_alike(
    client: TestClient, database: Database, measure: Any
) -> None:
    evaluations = measure(WORSE), measure(BETTER)
    for evaluation_id, dtype in zip(evaluations, ("float32", "bfloat16"), strict=True):
        with database.write() as session:
            row = session.get(Evaluation, evaluation_id)
            row.manifest = {**(row.manifest or {}), "engine": {"name": "vllm", "dtype": dtype}}
            session.add(row)

    (found,) = read(client, "compare", ids=evaluations).json()["benchmarks"]

    assert found["others"][0]["comparison"]["differences"] == ["engine.dtype"]


def test_what_was_compared_is_kept_beside_the_samples(
    client: TestClient, measure: Any, settings: Settings
) -> None:
    a, b = measure(WORSE), measure(BETTER)
    first = read(client, "compare", ids=[a, b]).json()
    kept = evaluation_folder(settings, b) / "comparisons-2" / a / "gsm8k.json"
    assert kept.is_file()
    samples_path(settings, a, "gsm8k").unlink()

    assert read(client, "compare", ids=[a, b]).json() == first
    kept.write_text("torn {")
    again = read(client, "compare", ids=[a, b]).json()["benchmarks"][0]
    assert again["others"][0]["comparison"]["obstacle"] == "samples_missing"


def test_what_is_unfinished_or_unknown_is_not_compared(
    client: TestClient, measure: Any, ask: Callable[..., Any]
) -> None:
    a = measure(WORSE)
    waiting = ask().json()["items"][0]["id"]

    unfinished = read(client, "compare", ids=[a, waiting])
    unknown = read(client, "compare", ids=[a, "ev_aaaaaaaaaaaa", "ev_bbbbbbbbbbbb"])

    assert (unfinished.status_code, unfinished.json()["error"]) == (409, "evaluation_unfinished")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "evaluation_not_found")
    assert unknown.json()["details"] == {"evaluations": ["ev_aaaaaaaaaaaa", "ev_bbbbbbbbbbbb"]}


def test_the_board_has_the_best_score_of_each_target_in_order(
    client: TestClient, measure: Any, model: Model, checkpoint: dict[str, Any]
) -> None:
    measure(WORSE)
    best = measure(BETTER)
    newest = measure(WORSE)
    other = measure((1.0, 1.0, 1.0, 1.0), targets=[checkpoint])

    board = read(client, "leaderboard").json()
    by_newest = read(client, "leaderboard", which="newest").json()

    assert (board["label"], board["metric"], board["mode"]) == ("gsm8k", "strict", "max")
    assert [(each["rank"], each["evaluation_id"]) for each in board["items"]] == [(1, other), (2, best)]
    assert board["items"][1]["target"]["model"]["id"] == model.id
    assert board["items"][0]["target"]["step"] == 3
    assert board["items"][0]["score"]["low"] is not None
    assert [each["evaluation_id"] for each in by_newest["items"]] == [other, newest]
    assert board["benchmarks"][0]["metrics"][0] == "strict"


def test_the_board_keeps_ways_of_measuring_apart(
    client: TestClient, measure: Any, checkpoint: dict[str, Any]
) -> None:
    zero = measure(WORSE), measure(WORSE, targets=[checkpoint])
    five = measure(BETTER, {"benchmark": "gsm8k", "shots": 5})

    board = read(client, "leaderboard", label="gsm8k").json()

    assert {each["evaluation_id"] for each in board["items"]} == set(zero)
    assert [each["evaluations"] for each in board["configurations"]] == [2, 1]
    other = board["configurations"][1]
    assert other["order"]["shots"] == 5
    shown = read(client, "leaderboard", configuration=other["id"]).json()
    assert [each["evaluation_id"] for each in shown["items"]] == [five]


def test_a_seed_tells_apart_only_where_problems_are_drawn(client: TestClient, measure: Any) -> None:
    measure(WORSE, seed=1)
    measure(BETTER, seed=2)
    assert len(read(client, "leaderboard").json()["configurations"]) == 1

    for seed in (1, 2):
        measure(BETTER, {"benchmark": "gsm8k", "limit": 2, "label": "some"}, seed=seed)

    assert len(read(client, "leaderboard", label="some").json()["configurations"]) == 2


def test_equal_scores_have_one_rank(client: TestClient, measure: Any, checkpoint: dict[str, Any]) -> None:
    measure(BETTER)
    measure(BETTER, targets=[checkpoint])

    assert [each["rank"] for each in read(client, "leaderboard").json()["items"]] == [1, 1]


def test_a_board_without_scores_is_empty(client: TestClient) -> None:
    board = read(client, "leaderboard").json()

    assert (board["label"], board["metric"], board["items"], board["benchmarks"]) == (None, None, [], [])
    assert read(client, "leaderboard", label="nothing", metric="x").json()["items"] == []


def test_the_history_of_a_job_goes_by_steps(
    client: TestClient, database: Database, settings: Settings, measure: Any, checkpoint: dict[str, Any]
) -> None:
    folder = settings.checkpoint_dir(checkpoint["job"]) / "global_step_1"
    folder.mkdir()
    with database.write() as session:
        row = jobs.find_checkpoint(session, job_id=checkpoint["job"], step=3)
        assert row is not None
        values = {**row.model_dump(), "step": 1, "path": str(folder)}
        session.add(Checkpoint(**values))
    late = measure(BETTER, targets=[checkpoint])
    early = measure(WORSE, targets=[{**checkpoint, "step": 1}])

    items = read(client, "history", job=checkpoint["job"]).json()["items"]

    assert [(each["target"]["step"], each["evaluation_id"]) for each in items] == [(1, early), (3, late)]
    assert {each["score"]["metric"] for each in items} == {"strict"}
    assert read(client, "history", job=checkpoint["job"], label="other").json()["items"] == []


def test_the_history_of_a_model_begins_with_what_it_was_made_from(
    client: TestClient, database: Database, measure: Any, model: Model, checkpoint: dict[str, Any]
) -> None:
    with database.write() as session:
        row = session.get(Model, model.id)
        assert row is not None
        made = Model(
            **{
                **row.model_dump(exclude={"id", "name", "created_at"}),
                "id": "mdl_bbbbbbbbbbbb",
                "name": "made",
                "lineage": {"job_id": checkpoint["job"], "step": 3, "model_id": model.id},
            }
        )
        session.add(made)
    end = measure(BETTER, targets=[{"kind": "model", "model": "mdl_bbbbbbbbbbbb"}])
    middle = measure(BETTER, targets=[checkpoint])
    start = measure(WORSE)

    items = read(client, "history", model="mdl_bbbbbbbbbbbb").json()["items"]

    assert [each["evaluation_id"] for each in items] == [start, middle, end]
    assert [each["generation"] for each in items] == [0, 1, 2]


def custom(dataset: Dataset, **changes: Any) -> dict[str, Any]:
    return {"benchmark": "custom", "dataset": dataset.id, "scorer": {"kind": "exact"}, **changes}


@pytest.fixture
def other_dataset(database: Database, dataset: Dataset) -> Dataset:
    """Another dataset with the same rows."""
    with database.write() as session:
        fields = session.get(Dataset, dataset.id).model_dump(exclude={"id", "name", "created_at"})
        other = Dataset(**fields, id="ds_bbbbbbbbbbbb", name="other rows")
        session.add(other)
        for version in session.exec(select(DatasetVersion)).all():
            session.add(DatasetVersion(**{**version.model_dump(), "dataset_id": other.id}))
        for ref in session.exec(select(DatasetRef)).all():
            session.add(DatasetRef(**{**ref.model_dump(), "dataset_id": other.id}))
    return other


def test_one_label_on_two_datasets_is_two_benchmarks_of_the_board(
    client: TestClient, measure: Any, dataset: Dataset, other_dataset: Dataset
) -> None:
    first = measure(WORSE, custom(dataset))
    second = measure(BETTER, custom(other_dataset))

    board = read(client, "leaderboard", label="custom").json()
    boards = {
        each.id: read(client, "leaderboard", label="custom", dataset=each.id).json()
        for each in (dataset, other_dataset)
    }

    names = {each["dataset"]["name"] for each in board["benchmarks"]}
    assert names == {dataset.name, other_dataset.name}
    assert [each["evaluation_id"] for each in boards[dataset.id]["items"]] == [first]
    assert [each["evaluation_id"] for each in boards[other_dataset.id]["items"]] == [second]
    assert boards[dataset.id]["dataset"]["name"] == dataset.name
    assert boards[dataset.id]["configurations"][0]["dataset"]["version"]


def test_the_history_names_the_dataset_that_was_measured_on(
    client: TestClient, database: Database, measure: Any, model: Model, dataset: Dataset
) -> None:
    measure(WORSE, custom(dataset))
    with database.write() as session:
        session.delete(session.get(Dataset, dataset.id))

    (point,) = read(client, "history", model=model.id).json()["items"]

    assert (point["dataset"]["name"], point["dataset"]["is_deleted"]) == (dataset.name, True)


def test_a_history_is_of_one_thing(client: TestClient) -> None:
    refused = read(client, "history")

    assert (refused.status_code, refused.json()["error"]) == (422, "history_of_what")


@pytest.mark.slow
def test_a_board_over_many_scores_is_quick(client: TestClient, database: Database, measure: Any) -> None:
    known = measure(WORSE)
    with database.write() as session:
        of_known = (EvaluationScore.evaluation_id == known, EvaluationScore.metric == "strict")
        example = session.exec(select(EvaluationScore).where(*of_known)).first()
        assert example is not None
        fields = example.model_dump(exclude={"id", "target_model_id", "value"})
        session.add_all(
            EvaluationScore(**fields, target_model_id=f"mdl_{number % 5000}", value=number / 20_000)
            for number in range(20_000)
        )

    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        board = read(client, "leaderboard")
        seconds.append(time.perf_counter() - began)
        assert len(board.json()["items"]) == 200

    assert min(seconds) < 1.0  # whatever else the machine does


def make_checkpoint(settings: Settings, database: Database, job_id: str) -> str:
    """Write the checkpoint of step 5; return the job's id."""
    folder = settings.checkpoint_dir(job_id) / "global_step_5"
    folder.mkdir(parents=True)
    row = Checkpoint(job_id=job_id, step=5, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now())
    with database.write() as session:
        session.add(row)
    return job_id


def test_tests_of_several_jobs_are_corrected_for_their_number(
    client: TestClient,
    measure: Any,
    checkpoint: dict[str, Any],
    make_job: Callable[..., str],
    settings: Settings,
    database: Database,
    model: Model,
) -> None:
    others = [make_checkpoint(settings, database, make_job(model_id=model.id)) for _ in range(2)]
    measure(WORSE, targets=[checkpoint])
    for job_id, scores in zip(others, (BETTER, WORSE), strict=True):
        measure(scores, targets=[{"kind": "checkpoint", "job": job_id, "step": 5}])

    ids = ",".join([checkpoint["job"], *others])
    runs = client.get("/api/v1/jobs/compare/evaluations", params={"ids": ids}).json()["runs"]

    pairs = [run["benchmarks"][0] for run in runs]
    assert [pair["comparison"]["p_value"] for pair in pairs] == [0.5, 1.0]
    assert [pair["p_adjusted"] for pair in pairs] == [1.0, 1.0]


def test_jobs_are_compared_by_the_newest_evaluations_of_their_checkpoints(
    client: TestClient,
    measure: Any,
    checkpoint: dict[str, Any],
    make_job: Callable[..., str],
    settings: Settings,
    database: Database,
    model: Model,
) -> None:
    other = make_checkpoint(settings, database, make_job(name="other", model_id=model.id))
    unmeasured = make_job(name="unmeasured", model_id=model.id)
    measure(BETTER, targets=[checkpoint])
    newest = measure(WORSE, targets=[checkpoint])
    theirs = measure(BETTER, targets=[{"kind": "checkpoint", "job": other, "step": 5}])

    response = client.get(
        "/api/v1/jobs/compare/evaluations", params={"ids": f"{checkpoint['job']},{other},{unmeasured}"}
    )

    assert response.status_code == 200, response.text
    found = response.json()
    assert (found["baseline"], found["evaluated"]) == (checkpoint["job"], [checkpoint["job"], other])
    assert [(run["job_id"], len(run["benchmarks"])) for run in found["runs"]] == [(other, 1), (unmeasured, 0)]
    pair = found["runs"][0]["benchmarks"][0]
    assert (pair["baseline"]["id"], pair["evaluation"]["id"], pair["evaluation"]["step"]) == (
        newest, theirs, 5,
    )  # fmt: skip
    assert (pair["comparison"]["difference"], pair["comparison"]["p_value"]) == (0.5, 0.5)
    assert pair["p_adjusted"] == 0.5
    refused = client.get(
        "/api/v1/jobs/compare/evaluations", params={"ids": other, "baseline": checkpoint["job"]}
    )
    assert refused.json()["error"] == "invalid_comparison"
