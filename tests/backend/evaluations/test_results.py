"""What is read of an evaluation: scores so far, results, samples, what another one would take."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.evaluations import recording, repository
from trellis_api.evaluations.folder import result_path, samples_path
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.evaluations import leave_results

Ask = Callable[..., Any]
Finish = Callable[..., None]


def row_of(database: Database, evaluation_id: str) -> Evaluation:
    with database.read() as session:
        row = repository.find_evaluation(session, evaluation_id=evaluation_id)
    assert row is not None
    return row


def test_results_are_read_with_their_groups(client: TestClient, ask: Ask, finish: Finish) -> None:
    made = ask({"benchmark": "math500"}).json()["items"][0]

    finish(made["id"])

    read = client.get(f"/api/v1/evaluations/{made['id']}").json()
    (result,) = read["results"]
    assert (read["state"], read["partial"]) == ("succeeded", {})
    assert (result["headline"], result["scores"][0]["value"]) == ("strict", 0.75)
    assert [group["name"] for group in result["groups"]] == ["Level 1", "Level 2"]
    listed = client.get("/api/v1/evaluations", params={"benchmark": "math500"}).json()["items"]
    assert listed[0]["results"][0]["groups"] == []
    assert client.get("/api/v1/evaluations", params={"benchmark": "math"}).json()["items"] == []
    manifest = client.get(f"/api/v1/evaluations/{made['id']}/manifest").json()["manifest"]
    assert manifest["engine"] == {"name": "vllm"}


def test_scores_are_written_once_however_often_they_are_recorded(
    database: Database, settings: Settings, ask: Ask, finish: Finish
) -> None:
    made = ask({"benchmark": "gsm8k", "limit": 4}, {"benchmark": "gsm8k", "limit": 4, "label": "again"})
    made = made.json()["items"][0]
    finish(made["id"])

    with database.write() as session:
        job = service.get_job(session, job_id=made["job_id"])
        result = recording.read_result(settings, row_of(database, made["id"]))
        recording.record_result(session, job=job, result=result)
        scores = session.exec(
            select(EvaluationScore).where(EvaluationScore.evaluation_id == made["id"])
        ).all()

    assert len(scores) == 6  # of each: one over all problems, and one of either level
    assert sum(score.is_headline for score in scores) == 2
    assert len({score.configuration for score in scores}) == 1


def test_scores_of_other_problems_are_of_another_configuration(
    database: Database, settings: Settings, ask: Ask, finish: Finish
) -> None:
    found = []
    for order, seed in (({}, 0), ({}, 1), ({"limit": 4}, 0), ({"limit": 4}, 1), ({"shots": 0}, 0)):
        made = ask({"benchmark": "gsm8k", **order}, seed=seed).json()["items"][0]
        finish(made["id"])
        with database.read() as session:
            wanted = EvaluationScore.evaluation_id == made["id"]
            found.append({row.configuration for row in session.exec(select(EvaluationScore).where(wanted))})

    assert all(len(each) == 1 for each in found)
    # The seed decides nothing where every problem is taken and answers are greedy.
    assert found[0] == found[1]
    assert len({each for some in found for each in some}) == 4


@pytest.mark.parametrize("wrong", ["absent", "cut", "other", "label", "samples"])
def test_what_is_no_result_is_told_apart(
    database: Database, settings: Settings, ask: Ask, wrong: str
) -> None:
    row = row_of(database, ask().json()["items"][0]["id"])
    leave_results(settings, row)
    path = result_path(settings, row.id)
    text = path.read_text()
    if wrong == "absent":
        path.unlink()
    if wrong == "cut":
        path.write_text(text[: len(text) // 2])
    if wrong == "other":
        path.write_text(text.replace(row.id, "ev_aaaaaaaaaaaa"))
    if wrong == "label":
        path.write_text(text.replace('"label":"gsm8k"', '"label":"mmlu"'))
    if wrong == "samples":
        samples_path(settings, row.id, "gsm8k").unlink()

    with pytest.raises(recording.UnusableResult):
        recording.read_result(settings, row)


def test_scores_so_far_are_the_jobs_own_metrics(database: Database, client: TestClient, ask: Ask) -> None:
    made = ask().json()["items"][0]
    with database.write() as session:
        job = service.get_job(session, job_id=made["job_id"])
        for step, value in ((1, 0.0), (2, 0.5)):
            metric_store.write(
                session, job=job, metrics=[(step, {"gsm8k/strict": value, "engine/tokens_per_s": 9.0})]
            )

    read = client.get(f"/api/v1/evaluations/{made['id']}").json()

    assert read["partial"] == {"gsm8k": {"strict": 0.5}}


def test_samples_are_browsed_with_filters(client: TestClient, ask: Ask, finish: Finish) -> None:
    made, other = (ask().json()["items"][0] for _ in range(2))
    path = f"/api/v1/evaluations/{made['id']}/samples"
    early = client.get(path, params={"label": "gsm8k"})
    finish(made["id"])
    finish(other["id"], scores=(1.0, 1.0, 0.0, 1.0))

    def ask_for(**query: Any) -> Any:
        return client.get(path, params={"label": "gsm8k", **query})

    assert (early.status_code, early.json()["error"]) == (409, "samples_not_ready")
    first = ask_for(limit=3).json()
    assert [each["position"] for each in first["items"]] == [0, 1, 2]
    rest = ask_for(limit=3, cursor=first["next_cursor"]).json()
    assert [each["position"] for each in rest["items"]] == [3]
    assert (first["counts"]["wrong"], first["groups"]) == (1, {"level": {"Level 1": 2, "Level 2": 2}})
    assert [each["position"] for each in ask_for(verdict="wrong").json()["items"]] == [1]
    level = {"group_kind": "level", "group": "Level 1"}
    assert [each["position"] for each in ask_for(**level).json()["items"]] == [0, 2]
    assert [each["position"] for each in ask_for(search="number 2?").json()["items"]] == [2]
    worse = ask_for(against=other["id"], changed="worse").json()
    assert [each["position"] for each in worse["items"]] == [1]
    assert (worse["changes"]["better"], worse["changes"]["worse"]) == (1, 1)
    beside = client.get(f"{path}/gsm8k/1/0", params={"against": other["id"]}).json()
    assert (beside["sample"]["score"], beside["against"]["score"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("path", "query", "answer"),
    [
        ("", {"label": "mmlu"}, (404, "sample_not_found")),
        ("", {"label": "gsm8k", "changed": "any"}, (422, "against_missing")),
        ("", {"label": "gsm8k", "cursor": "x"}, (422, "invalid_cursor")),
        ("", {"label": "gsm8k", "against": "ev_aaaaaaaaaaaa"}, (404, "evaluation_not_found")),
        ("/gsm8k/9/0", {}, (404, "sample_not_found")),
        ("/gsm8k/1/5000", {}, (404, "sample_not_found")),
    ],
)
def test_what_is_wrong_with_a_look_at_samples_is_told(
    client: TestClient, ask: Ask, finish: Finish, path: str, query: dict[str, str], answer: tuple[int, str]
) -> None:
    made = ask().json()["items"][0]
    finish(made["id"])

    refused = client.get(f"/api/v1/evaluations/{made['id']}/samples{path}", params=query)

    assert (refused.status_code, refused.json()["error"]) == answer


def test_damaged_samples_are_an_error_of_their_own(
    client: TestClient, settings: Settings, ask: Ask, finish: Finish
) -> None:
    made = ask().json()["items"][0]
    finish(made["id"])
    samples_path(settings, made["id"], "gsm8k").write_bytes(b"SQLite format 3\x00" + b"\xff" * 500)

    refused = client.get(f"/api/v1/evaluations/{made['id']}/samples", params={"label": "gsm8k"})

    assert (refused.status_code, refused.json()["error"]) == (409, "samples_damaged")


def test_nothing_measured_gives_no_estimate_and_a_finished_one_does(
    client: TestClient, ask: Ask, finish: Finish, install: Callable[..., None], model: Model
) -> None:
    orders = [{"benchmark": "gsm8k", "limit": 40}, {"benchmark": "harness", "task": "arc_easy"}]

    before = ask(*orders, path="/estimate").json()
    finish(ask({"benchmark": "gsm8k", "limit": 4}).json()["items"][0]["id"], seconds=8.0)
    after = ask(orders[0], path="/estimate").json()
    otherwise = ask({"benchmark": "gsm8k", "limit": 40, "shots": 0}, path="/estimate").json()

    assert (before["seconds"], before["samples"]) == (None, None)
    assert before["targets"][0]["benchmarks"][0]["samples"] == 40
    assert before["to_install"] == ["gsm8k"]
    assert (after["samples"], after["seconds"], after["output_tokens"]) == (40, 80.0, 160)
    assert after["targets"][0]["benchmarks"][0]["measured_in"] == 1
    assert otherwise["seconds"] is None
    assert client.get("/api/v1/evaluations").json()["items"][1:] == []


def test_an_estimate_knows_the_problems_that_are_chosen_and_what_judges_may_cost(
    settings: Settings, ask: Ask, install: Callable[..., None], dataset: Any
) -> None:
    settings.judges = {"big": {"base_url": "http://127.0.0.1:1/v1", "model": "big"}}  # type: ignore[dict-item]
    install("math500", groups={"level": {"Level 1": 43, "Level 5": 134}, "type": {"Algebra": 124}})
    judge = {"kind": "judge", "judge": "big", "rubric": "Is it right?", "max_cost": 0.5}
    orders = [
        {"benchmark": "math500", "levels": [1, 5]},
        {"benchmark": "math500", "levels": [1], "types": ["Algebra"]},
        {"benchmark": "humaneval", "samples": 5, "decoding": {"temperature": 0.8}},
        {"benchmark": "custom", "dataset": dataset.id, "scorer": judge},
    ]

    found = ask(*orders, path="/estimate").json()

    samples = [each["samples"] for each in found["targets"][0]["benchmarks"]]
    assert samples == [177, 43, 820, 512]
    assert found["judge_cost"] == 0.5


def test_a_failed_one_says_why(database: Database, client: TestClient, ask: Ask) -> None:
    made = ask().json()["items"][0]
    with database.write() as session:
        service.claim_for_launch(session, job_id=made["job_id"])
        service.settle(
            session, job_id=made["job_id"], attempt=1, state=JobState.FAILED, reason="no room",
            cause="evaluation_invalid",
        )  # fmt: skip

    read = client.get(f"/api/v1/evaluations/{made['id']}").json()

    assert (read["failure"]["cause"], read["can_retry"]) == ("evaluation_invalid", True)
    assert "Retry" in read["failure"]["hint"]["en"]
    assert client.get(f"/api/v1/evaluations/{made['id']}/manifest").status_code == 409
