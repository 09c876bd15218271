"""Previews and runs over HTTP, carried out by the workers' own code."""

import shutil
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.settings import Settings
from trellis_api.datasets import cutting
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_testing.chat_endpoint import running_chat_endpoint
from trellis_testing.uploads import Finish, Upload, as_lines, rows_of

PIPELINES = "/api/v1/pipelines"
RUNS = f"{PIPELINES}/runs"
STEPS = [{"operator": "empty_answers"}, {"operator": "exact_duplicates"}]
CLEAN: dict[str, Any] = {"name": "clean", "steps": STEPS}


def preview(client: TestClient, finish: Finish, **request: Any) -> dict[str, Any]:
    answer = client.post(f"{PIPELINES}/preview", json={"pipeline": CLEAN, **request})
    assert answer.status_code == 202, answer.text
    finish()
    task: dict[str, Any] = client.get(f"/api/v1/data-tasks/{answer.json()['id']}").json()
    return task


def test_a_preview_says_what_becomes_of_each_row(
    client: TestClient, finish: Finish, rows: dict[str, Any]
) -> None:
    task = preview(client, finish, dataset=rows["id"], rows=10)

    steps = task["result"]["steps"]
    assert (task["state"], task["result"]["rows_in"], task["result"]["rows_out"]) == ("succeeded", 10, 5)
    assert [row["state"] for row in steps[0]["rows"]].count("dropped") == 2
    assert steps[1]["rows"][5]["reason"] == "exact_duplicate"
    assert task["made_version"] is None


def test_a_preview_with_a_pipeline_that_does_not_fit_is_refused(
    client: TestClient, rows: dict[str, Any]
) -> None:
    pipeline = {"name": "bad", "steps": [{"operator": "length", "params": {"columns": ["nowhere"]}}]}

    answer = client.post(f"{PIPELINES}/preview", json={"pipeline": pipeline, "dataset": rows["id"]})

    assert (answer.status_code, answer.json()["error"]) == (422, "pipeline_invalid")
    assert answer.json()["details"][0]["step"] == "length"


def test_a_run_makes_the_next_version(client: TestClient, run: Any, rows: dict[str, Any]) -> None:
    done = run(rows, output={"kind": "version", "message": "cleaned"})

    dataset = client.get(f"/api/v1/datasets/{rows['id']}").json()
    assert done["task"]["state"] == "succeeded", done["task"]["reason"]
    assert done["task"]["result"] is None
    assert done["report"]["rows_in"] == 10
    assert [bar["rows"] for bar in done["report"]["funnel"]] == [10, 8, 5]
    assert [(step["name"], step["dropped"]) for step in done["report"]["steps"]] == [
        ("empty_answers", 2),
        ("exact_duplicates", 3),
    ]
    assert dataset["head"] == done["task"]["made_version"] != rows["head"]
    assert len(rows_of(client, dataset)) == 5


def test_a_run_makes_a_branch(client: TestClient, run: Any, rows: dict[str, Any]) -> None:
    run(rows, output={"kind": "version", "branch": "clean"})

    refs = client.get(f"/api/v1/datasets/{rows['id']}/refs").json()
    assert {each["name"] for each in refs["branches"]} == {"main", "clean"}
    assert client.get(f"/api/v1/datasets/{rows['id']}").json()["head"] == rows["head"]


def test_a_run_makes_a_dataset(client: TestClient, run: Any, rows: dict[str, Any]) -> None:
    done = run(rows, output={"kind": "dataset", "name": "clean questions"})

    made = client.get(f"/api/v1/datasets/{done['output']['dataset_id']}").json()
    assert (made["state"], made["name"], made["row_count"]) == ("ready", "clean questions", 5)
    assert made["source"]["kind"] == "pipeline"
    assert made["source"]["dataset"] == rows["id"]


def test_a_dataset_to_be_is_there_from_the_start(client: TestClient, rows: dict[str, Any]) -> None:
    body = {"pipeline": CLEAN, "dataset": rows["id"], "output": {"kind": "dataset", "name": "to be"}}

    begun = client.post(RUNS, json=body)
    again = client.post(RUNS, json=body)

    made = client.get(f"/api/v1/datasets/{begun.json()['output']['dataset_id']}").json()
    assert made["state"] == "creating"
    assert made["task"]["id"] == begun.json()["task"]["id"]
    assert (again.status_code, again.json()["error"]) == (409, "dataset_name_taken")


def test_a_run_for_its_report_alone_makes_nothing(client: TestClient, run: Any, rows: dict[str, Any]) -> None:
    done = run(rows, output={"kind": "none"}, purpose="duplicates")

    assert done["task"]["purpose"] == "duplicates"
    assert done["task"]["made_version"] is None
    assert client.get(f"/api/v1/datasets/{rows['id']}").json()["head"] == rows["head"]


def test_dropped_rows_are_read_in_pages_with_their_reasons(
    client: TestClient, run: Any, rows: dict[str, Any]
) -> None:
    done = run(rows, output={"kind": "none"})
    place = f"{RUNS}/{done['task']['id']}/steps"

    empty = client.get(f"{place}/0/dropped").json()
    twice = client.get(f"{place}/1/dropped", params={"offset": 1, "limit": 1}).json()
    beyond = client.get(f"{place}/1/dropped", params={"offset": 2**62}).json()

    assert [(row["position"], row["row"]["question"]) for row in empty["rows"]] == [
        (8, "And what is nothing?"),
        (9, "And what is less?"),
    ]
    assert (twice["row_count"], [row["position"] for row in twice["rows"]]) == (3, [6])
    assert twice["rows"][0]["reason"] == "exact_duplicate"
    assert beyond["rows"] == []


def test_dropped_rows_that_are_long_are_cut(
    client: TestClient, run: Any, upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = {"question": "long?", "answer": "a word " * 1000}
    done = run(upload(as_lines([long] * 3), "long.jsonl"), output={"kind": "none"})
    place = f"{RUNS}/{done['task']['id']}/steps/1/dropped"

    whole = client.get(place).json()
    monkeypatch.setattr(cutting, "MOST_CHARACTERS", 2000)
    part = client.get(place).json()

    assert ([each["row"] for each in whole["rows"]], whole["cut"]) == ([long] * 2, [])
    assert part["cut"] == [{"row": n, "column": "answer"} for n in range(2)]
    assert [each["position"] for each in part["rows"]] == [1, 2]
    assert sum(len(each["row"]["answer"]) for each in part["rows"]) <= 2000


def test_clusters_are_read_in_pages_largest_first(client: TestClient, run: Any, upload: Upload) -> None:
    texts = [f"question {n}" for n in range(30) for _ in range(1 + 24 * (n == 7) + (n < 7))]
    dataset = upload(as_lines([{"question": text, "answer": "yes"} for text in texts]), "many.jsonl")
    pipeline = {"name": "twice", "steps": [{"operator": "exact_duplicates"}]}
    done = run(dataset, pipeline=pipeline, output={"kind": "none"})
    place = f"{RUNS}/{done['task']['id']}/steps/0/clusters"

    first = client.get(place, params={"limit": 1}).json()
    rest = client.get(place, params={"offset": 1, "limit": 50}).json()

    largest = first["clusters"][0]
    assert (first["cluster_count"], largest["size"], len(largest["members"])) == (8, 25, 20)
    assert [member["survives"] for member in largest["members"][:2]] == [True, False]
    assert largest["members"][0]["text"].startswith("question 7")
    assert [each["size"] for each in rest["clusters"]] == [2] * 7
    assert [each["number"] for each in rest["clusters"]] == list(range(1, 8))


def test_steps_say_what_can_be_looked_at(client: TestClient, run: Any, rows: dict[str, Any]) -> None:
    done = run(rows, output={"kind": "none"})
    place = f"{RUNS}/{done['task']['id']}/steps"

    none = client.get(f"{place}/0/clusters")
    beyond = client.get(f"{place}/2/dropped")

    assert [(each["has_dropped"], each["has_clusters"]) for each in done["report"]["steps"]] == [
        (True, False),
        (True, True),
    ]
    assert (none.status_code, none.json()["error"]) == (404, "nothing_kept")
    assert (beyond.status_code, beyond.json()["error"]) == (404, "step_not_found")


def test_what_is_gone_from_the_disk_is_told(
    client: TestClient, settings: Settings, run: Any, rows: dict[str, Any]
) -> None:
    done = run(rows, output={"kind": "none"})
    task_id = done["task"]["id"]
    damaged = next((settings.data_task_dir(task_id) / "run" / "reduced").rglob("clusters.parquet"))
    damaged.write_bytes(b"PAR1 is not enough")
    shutil.rmtree(settings.data_task_dir(task_id) / "run" / "dropped")

    again = client.get(f"{RUNS}/{task_id}").json()
    dropped = client.get(f"{RUNS}/{task_id}/steps/0/dropped")
    clusters = client.get(f"{RUNS}/{task_id}/steps/1/clusters")

    assert [step["has_dropped"] for step in again["report"]["steps"]] == [False, False]
    assert [each.json()["error"] for each in (dropped, clusters)] == ["nothing_kept", "nothing_kept"]


def test_a_saved_pipeline_is_run_at_a_version(client: TestClient, run: Any, rows: dict[str, Any]) -> None:
    kept = client.post(PIPELINES, json={"pipeline": CLEAN}).json()
    shorter = {**CLEAN, "steps": STEPS[:1]}
    client.post(f"{PIPELINES}/{kept['id']}/versions", json={"pipeline": shorter})

    newest = run(rows, pipeline_id=kept["id"], output={"kind": "none"})
    first = run(rows, pipeline_id=kept["id"], pipeline_version=1, output={"kind": "none"})
    listed = client.get(RUNS, params={"pipeline": kept["id"]}).json()["items"]

    assert (newest["pipeline_version"], newest["report"]["rows_out"]) == (2, 8)
    assert (first["pipeline_version"], first["report"]["rows_out"]) == (1, 5)
    assert [each["task"]["id"] for each in listed] == [first["task"]["id"], newest["task"]["id"]]


def test_runs_are_listed_by_dataset_and_purpose_without_reports(
    client: TestClient, run: Any, upload: Upload, rows: dict[str, Any]
) -> None:
    other = upload(filename="other.jsonl")
    duplicates = run(rows, output={"kind": "none"}, purpose="duplicates")
    run(rows, output={"kind": "none"})
    run(other, output={"kind": "none"})

    def ids(**params: Any) -> list[str]:
        return [each["task"]["id"] for each in client.get(RUNS, params=params).json()["items"]]

    assert len(ids()) == 3
    assert len(ids(dataset=rows["id"])) == 2
    assert ids(dataset=rows["id"], purpose="duplicates") == [duplicates["task"]["id"]]
    assert ids(version=rows["head"], limit=1) == ids(dataset=rows["id"])[:1]
    assert client.get(RUNS).json()["items"][0]["report"] is None


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"pipeline": None}, 422, "pipeline_missing"),
        ({"pipeline_id": "pip_aaaaaaaaaaaa"}, 422, "pipeline_missing"),
        ({"pipeline": None, "pipeline_id": "pip_aaaaaaaaaaaa"}, 404, "pipeline_not_found"),
        ({"pipeline_version": 1}, 422, "pipeline_missing"),
        ({"dataset": "ds_aaaaaaaaaaaa"}, 404, "dataset_not_found"),
        ({"dataset": "../x"}, 404, "dataset_not_found"),
        ({"version": "nowhere"}, 404, "version_not_found"),
        ({"version": "a\x00b"}, 422, "invalid_request"),
        ({"splits": ["nowhere"]}, 404, "split_not_found"),
        ({"splits": []}, 422, "invalid_request"),
        ({"judges": ["nobody"]}, 422, "unknown_judge"),
        ({"executor": "ray"}, 409, "ray_missing"),
        ({"output": {"kind": "version", "branch": "../x"}}, 422, "invalid_request"),
        ({"output": {"kind": "dataset", "name": "questions"}}, 409, "dataset_name_taken"),
        (
            {"resources": {"x": {"dataset_id": "ds_aaaaaaaaaaaa", "version": "main"}}},
            404,
            "dataset_not_found",
        ),
        ({"max_judge_cost": 0}, 422, "invalid_request"),
    ],
)
def test_a_run_that_cannot_be_is_refused_and_leaves_nothing(
    client: TestClient, rows: dict[str, Any], changes: dict[str, Any], status: int, code: str
) -> None:
    body = {
        "pipeline": CLEAN,
        "dataset": rows["id"],
        "output": {"kind": "dataset", "name": "made"},
        **changes,
    }

    answer = client.post(RUNS, json=body)

    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    assert client.get(RUNS).json()["items"] == []
    assert len(client.get("/api/v1/datasets").json()["items"]) == 1


def test_a_run_is_not_taken_up_again_for_a_dataset_that_was_deleted(
    client: TestClient, rows: dict[str, Any]
) -> None:
    body = {"pipeline": CLEAN, "dataset": rows["id"], "output": {"kind": "dataset", "name": "to be"}}
    task = client.post(RUNS, json=body).json()["task"]
    made = next(each for each in client.get("/api/v1/datasets").json()["items"] if each["id"] != rows["id"])
    client.post(f"/api/v1/data-tasks/{task['id']}/cancel")
    assert client.delete(f"/api/v1/datasets/{made['id']}").status_code == 204

    answer = client.post(f"/api/v1/data-tasks/{task['id']}/retry")

    assert (answer.status_code, answer.json()["error"]) == (409, "data_task_not_retryable")
    assert not client.get(f"/api/v1/data-tasks/{task['id']}").json()["can_retry"]


def test_tasks_are_not_looked_for_by_what_no_database_keeps(client: TestClient) -> None:
    assert client.get("/api/v1/data-tasks?dataset=%00").status_code == 422


def test_rows_are_not_written_to_a_tag(client: TestClient, rows: dict[str, Any]) -> None:
    client.post(f"/api/v1/datasets/{rows['id']}/tags", json={"name": "v1", "version": "main"})

    answer = client.post(
        RUNS, json={"pipeline": CLEAN, "dataset": rows["id"], "output": {"kind": "version", "branch": "v1"}}
    )

    assert (answer.status_code, answer.json()["error"]) == (409, "ref_name_taken")


def test_a_run_that_is_not_there_is_not_found(client: TestClient) -> None:
    for task_id in ("dtk_aaaaaaaaaaaa", "x"):
        assert client.get(f"{RUNS}/{task_id}").json()["error"] == "run_not_found"
        assert client.get(f"{RUNS}/{task_id}/steps/0/dropped").status_code == 404
        assert client.get(f"{RUNS}/{task_id}/steps/0/clusters").status_code == 404


def test_another_dataset_is_a_benchmark_to_stay_clear_of(
    client: TestClient, run: Any, upload: Upload
) -> None:
    question = "which of the two trains that leave the harbour town at seven in the morning arrives first"
    dataset = upload(
        as_lines([{"question": question, "answer": "b"}, {"question": "another one", "answer": "a"}]),
        "a.jsonl",
    )
    exam = upload(as_lines([{"item": question, "key": "b"}]), "exam.jsonl")
    pipeline = {"name": "clear", "steps": [{"operator": "decontaminate", "params": {"benchmarks": ["exam"]}}]}

    done = run(dataset, pipeline=pipeline, resources={"exam": {"dataset_id": exam["id"], "version": "main"}})

    assert done["task"]["state"] == "succeeded", done["task"]["reason"]
    assert done["report"]["steps"][0]["reasons"] == {"contaminated:exam": 1}


def test_judges_are_asked_within_their_bound(
    client: TestClient, settings: Settings, run: Any, rows: dict[str, Any]
) -> None:
    pipeline = {"name": "judged", "steps": [{"operator": "judge", "params": {"scorer": "strict"}}]}
    with running_chat_endpoint() as endpoint:
        settings.judges["strict"] = JudgeEndpoint(
            base_url=endpoint.url, model="m", requests_per_minute=600_000, output_price=1.0
        )
        done = run(rows, pipeline=pipeline, output={"kind": "dataset", "name": "judged"})

    made = client.get(f"/api/v1/datasets/{done['output']['dataset_id']}").json()
    assert done["task"]["state"] == "succeeded", done["task"]["reason"]
    assert {row["judge"] for row in rows_of(client, made)} == {0.5}


def test_a_pipeline_that_drops_everything_fails_in_words(
    client: TestClient, run: Any, rows: dict[str, Any]
) -> None:
    pipeline = {
        "name": "all",
        "steps": [{"operator": "length", "params": {"unit": "characters", "minimum": 10_000}}],
    }

    done = run(rows, pipeline=pipeline)

    assert (done["task"]["state"], done["task"]["cause"]) == ("failed", "no_rows_left")
    assert done["report"] is None
