"""Pipelines of jobs: stages in order of their needs, skipped where nothing changed, and what goes wrong."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.forecast import service as forecasting
from trellis_api.jobs.models import Checkpoint, Job
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.datasets import add_version
from trellis_testing.job_pipelines import PipelineRig


@pytest.fixture
def rig(database: Database, settings: Settings) -> PipelineRig:
    return PipelineRig(database, settings)


@pytest.fixture
def train(model: Model, dataset: Dataset) -> Any:
    """A stage that trains."""

    def stage(name: str, after: str | None = None, **more: Any) -> dict[str, Any]:
        source = {"stage": after} if after else {"base": model.id}
        wanted = {"recipe": "grpo", "preset": "cpu-tiny", "dataset": dataset.id, "model": source}
        return {"id": name, "kind": "train", **wanted, **more}

    return stage


@pytest.fixture
def chain(train: Any) -> list[dict[str, Any]]:
    evaluation = {
        "id": "measure", "kind": "evaluate", "model": {"stage": "rl"}, "benchmarks": [{"benchmark": "gsm8k"}]
    }  # fmt: skip
    return [train("sft"), train("rl", "sft"), evaluation]


def submit(client: TestClient, stages: list[dict[str, Any]], **more: Any) -> str:
    answer = client.post("/api/v1/job-pipelines", json={"name": "agent", "stages": stages, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def read(client: TestClient, pipeline_id: str) -> Any:
    return client.get(f"/api/v1/job-pipelines/{pipeline_id}").json()


def act(client: TestClient, pipeline_id: str, action: str) -> Any:
    return client.post(f"/api/v1/job-pipelines/{pipeline_id}/{action}")


def run_through(rig: PipelineRig, pipeline_id: str) -> None:
    """Let every stage that begins succeed, until nothing begins any more."""
    rig.look()
    while running := [name for name, state in rig.states(pipeline_id).items() if state == "running"]:
        for name in running:
            rig.end_stage(pipeline_id, name)
        rig.look()


def test_each_stage_starts_from_the_model_that_the_one_before_exported(
    client: TestClient, rig: PipelineRig, chain: list[dict[str, Any]], model: Model
) -> None:
    pipeline_id = submit(client, chain)
    assert rig.look() is True
    assert rig.states(pipeline_id) == {"sft": "running", "rl": "waiting", "measure": "waiting"}

    rig.end_stage(pipeline_id, "sft")
    rig.look()
    rl = read(client, pipeline_id)["stages"][1]
    made = rig.stages(pipeline_id)["sft"].model_id
    assert (rl["state"], rl["needs"], rl["job"]["state"]) == ("running", ["sft"], "queued")
    started_from = {job.id: job.model_id for job in rig.list_jobs() if job.kind == "train"}
    assert started_from[rl["job"]["id"]] == made != model.id

    run_through(rig, pipeline_id)
    found = read(client, pipeline_id)
    assert (found["state"], found["can_start"], found["can_stop"]) == ("succeeded", True, False)
    assert found["stages"][2]["evaluation_id"] is not None
    assert found["stages"][1]["model"]["name"] == "agent · rl"


def test_stages_are_checked_without_a_forecast_of_their_jobs(
    client: TestClient, chain: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(forecasting, "forecast", lambda *_, **__: asked.append("forecast"))

    submit(client, chain)

    assert asked == []


def test_a_second_run_skips_every_stage_and_keeps_what_came_of_it(
    client: TestClient, rig: PipelineRig, chain: list[dict[str, Any]]
) -> None:
    """B11."""
    first, second = submit(client, chain), ""
    run_through(rig, first)
    jobs = len(rig.list_jobs())

    second = submit(client, chain)
    assert rig.look() is False
    assert act(client, first, "start").status_code == 200
    rig.look()

    for pipeline_id in (first, second):
        found = read(client, pipeline_id)
        assert found["state"] == "succeeded"
        assert {stage["state"] for stage in found["stages"]} == {"skipped"}
        assert {stage["reused_from"]["id"] for stage in found["stages"]} == {first}
    assert len(rig.list_jobs()) == jobs
    assert read(client, second)["stages"][0]["model"] == read(client, first)["stages"][0]["model"]


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 5},
        {"params": {"learning_rate": 2e-6}},
        {"overrides": {"actor_rollout_ref.actor.ppo_epochs": 2}},
    ],
)
def test_a_stage_that_changed_runs_with_those_behind_it_and_the_others_are_skipped(
    client: TestClient, rig: PipelineRig, train: Any, change: dict[str, Any]
) -> None:
    run_through(rig, submit(client, [train("a"), train("b", "a"), train("c", "b")]))

    again = submit(client, [train("a"), train("b", "a", **change), train("c", "b")])
    run_through(rig, again)

    assert rig.states(again) == {"a": "skipped", "b": "succeeded", "c": "succeeded"}


def test_new_rows_of_the_dataset_run_the_stage_again(
    client: TestClient, rig: PipelineRig, train: Any, database: Database, settings: Settings, dataset: Dataset
) -> None:
    pipeline_id = submit(client, [train("a")])
    run_through(rig, pipeline_id)
    rows = [{"question": f"{n}*2", "answer": f"#### {2 * n}"} for n in range(400)]
    with database.write() as session:
        add_version(session, settings, dataset.id, rows)

    act(client, pipeline_id, "start")
    rig.look()

    assert rig.states(pipeline_id) == {"a": "running"}


def test_an_outcome_whose_model_was_deleted_is_made_again(
    client: TestClient, rig: PipelineRig, train: Any, database: Database
) -> None:
    pipeline_id = submit(client, [train("a")])
    run_through(rig, pipeline_id)
    with database.write() as session:
        session.delete(session.get(Model, rig.stages(pipeline_id)["a"].model_id))

    act(client, pipeline_id, "start")
    rig.look()

    assert rig.states(pipeline_id) == {"a": "running"}


def test_a_failed_stage_blocks_those_behind_it_and_the_others_go_on(
    client: TestClient, rig: PipelineRig, train: Any
) -> None:
    stages = [train("a"), train("b", "a"), train("c", "b"), train("d"), train("e", "d")]
    pipeline_id = submit(client, stages)
    rig.look()

    rig.end_stage(pipeline_id, "a", JobState.FAILED, reason="Rows are missing.", cause="bad_data")
    run_through(rig, pipeline_id)

    found = read(client, pipeline_id)
    by_name = {stage["id"]: stage for stage in found["stages"]}
    assert found["state"] == "failed"
    assert {name: stage["state"] for name, stage in by_name.items()} == {
        "a": "failed", "b": "blocked", "c": "blocked", "d": "succeeded", "e": "succeeded"
    }  # fmt: skip
    assert (by_name["a"]["reason"], by_name["a"]["hint"]["zh"] != "") == ("Rows are missing.", True)
    assert "a" in by_name["b"]["reason"]


def test_starting_again_skips_what_succeeded_and_runs_what_did_not(
    client: TestClient, rig: PipelineRig, train: Any
) -> None:
    pipeline_id = submit(client, [train("a"), train("b", "a")])
    rig.look()
    rig.end_stage(pipeline_id, "a")
    rig.look()
    rig.end_stage(pipeline_id, "b", JobState.FAILED)
    rig.look()

    assert act(client, pipeline_id, "start").json()["state"] == "running"
    run_through(rig, pipeline_id)

    assert rig.states(pipeline_id) == {"a": "skipped", "b": "succeeded"}


def test_a_stage_that_is_run_again_runs_with_all_behind_it_although_nothing_changed(
    client: TestClient, rig: PipelineRig, train: Any
) -> None:
    stages = [train("a"), train("b", "a"), train("c", "b"), train("d", "a")]
    pipeline_id = submit(client, stages)
    run_through(rig, pipeline_id)
    before = {name: stage.job_id for name, stage in rig.stages(pipeline_id).items()}

    answer = act(client, pipeline_id, "stages/b/rerun")
    assert answer.status_code == 200, answer.text
    run_through(rig, pipeline_id)

    after = {name: stage.job_id for name, stage in rig.stages(pipeline_id).items()}
    assert {name for name in after if after[name] != before[name]} == {"b", "c"}
    assert set(rig.states(pipeline_id).values()) == {"succeeded"}


def test_what_cannot_be_run_again_now_is_refused(client: TestClient, rig: PipelineRig, train: Any) -> None:
    pipeline_id = submit(client, [train("a"), train("b", "a")])
    rig.look()

    assert act(client, pipeline_id, "stages/a/rerun").json()["error"] == "job_pipeline_running"
    assert act(client, pipeline_id, "stages/b/rerun").json()["error"] == "stage_not_ready"
    assert act(client, pipeline_id, "stages/z/rerun").json()["error"] == "stage_not_found"
    assert act(client, pipeline_id, "start").json()["error"] == "job_pipeline_running"
    assert client.delete(f"/api/v1/job-pipelines/{pipeline_id}").json()["error"] == "job_pipeline_running"


def test_a_stop_ends_the_jobs_and_a_start_goes_on_from_their_checkpoints(
    client: TestClient, rig: PipelineRig, train: Any, database: Database
) -> None:
    pipeline_id = submit(client, [train("a"), train("b", "a")])
    rig.look()
    job_id = str(rig.stages(pipeline_id)["a"].job_id)
    with database.write() as session:
        from trellis_api.jobs import service

        service.claim_for_launch(session, job_id=job_id)

    assert act(client, pipeline_id, "stop").json()["state"] == "stopping"
    assert client.get(f"/api/v1/jobs/{job_id}").json()["state"] == "stopping"
    assert act(client, pipeline_id, "stop").json()["error"] == "job_pipeline_not_running"
    rig.end(job_id, JobState.STOPPED)
    rig.look()
    assert read(client, pipeline_id)["state"] == "stopped"
    assert rig.states(pipeline_id) == {"a": "stopped", "b": "waiting"}

    act(client, pipeline_id, "start")
    rig.look()

    job = client.get(f"/api/v1/jobs/{job_id}").json()
    assert (job["state"], job["attempt"]) == ("queued", 2)
    run_through(rig, pipeline_id)
    assert set(rig.states(pipeline_id).values()) == {"succeeded"}


def begin_export(rig: PipelineRig, pipeline_id: str, stage_id: str) -> str:
    """Let the training of a stage succeed; the export behind it."""
    job_id = rig.stages(pipeline_id)[stage_id].job_id
    assert job_id is not None
    rig.end(job_id)
    return find_export(rig, job_id)


def find_export(rig: PipelineRig, job_id: str) -> str:
    """The export that a training's order names now."""
    (order,) = (job.export_as for job in rig.list_jobs() if job.id == job_id)
    assert order is not None
    return str(order["job_id"])


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CRASHED, JobState.STOPPED])
def test_a_stage_that_has_trained_and_whose_export_failed_goes_on_from_the_export(
    client: TestClient, rig: PipelineRig, train: Any, state: JobState
) -> None:
    pipeline_id = submit(client, [train("a"), train("b", "a")])
    rig.look()
    trained = str(rig.stages(pipeline_id)["a"].job_id)
    failed = begin_export(rig, pipeline_id, "a")
    rig.end(failed, state, reason="The disk is full.")
    rig.look()
    assert rig.states(pipeline_id)["b"] == "blocked"

    act(client, pipeline_id, "start")
    rig.look()

    assert rig.states(pipeline_id) == {"a": "running", "b": "waiting"}
    assert rig.stages(pipeline_id)["a"].job_id == trained
    again = find_export(rig, trained)
    assert again != failed
    assert [job.id for job in rig.list_jobs() if job.kind == "train"] == [trained]
    rig.end(again)
    run_through(rig, pipeline_id)
    assert rig.states(pipeline_id) == {"a": "succeeded", "b": "succeeded"}


def test_an_export_that_cannot_be_made_again_lets_the_stage_train_again(
    client: TestClient, rig: PipelineRig, train: Any, database: Database
) -> None:
    pipeline_id = submit(client, [train("a"), train("b")])
    rig.look()
    trained = {name: str(stage.job_id) for name, stage in rig.stages(pipeline_id).items()}
    for name in trained:
        rig.end(begin_export(rig, pipeline_id, name), JobState.FAILED)
    rig.look()
    with database.write() as session:
        session.delete(session.get(Checkpoint, (trained["a"], 1)))

    act(client, pipeline_id, "start")
    act(client, pipeline_id, "stop")
    act(client, pipeline_id, "start")
    rig.look()

    now = {name: stage.job_id for name, stage in rig.stages(pipeline_id).items()}
    assert (now["a"] != trained["a"], now["b"] == trained["b"]) == (True, True)


def test_running_a_stage_again_whose_export_failed_trains_again(
    client: TestClient, rig: PipelineRig, train: Any
) -> None:
    pipeline_id = submit(client, [train("a")])
    rig.look()
    trained = rig.stages(pipeline_id)["a"].job_id
    rig.end(begin_export(rig, pipeline_id, "a"), JobState.FAILED)
    rig.look()

    assert act(client, pipeline_id, "stages/a/rerun").status_code == 200
    rig.look()

    assert rig.stages(pipeline_id)["a"].job_id != trained


def test_a_job_that_a_person_stops_or_deletes_ends_its_stage(
    client: TestClient, rig: PipelineRig, train: Any, database: Database
) -> None:
    pipeline_id = submit(client, [train("a"), train("b"), train("c", "b")])
    rig.look()
    stages = rig.stages(pipeline_id)
    client.post(f"/api/v1/jobs/{stages['a'].job_id}/stop").raise_for_status()
    with database.write() as session:
        session.delete(session.get(Job, stages["b"].job_id))
    rig.look()

    assert rig.states(pipeline_id) == {"a": "stopped", "b": "failed", "c": "blocked"}
    assert read(client, pipeline_id)["stages"][1]["cause"] == "stage_job_deleted"


def test_a_worker_that_dies_before_its_commit_leaves_no_job_and_the_next_begins_the_stage_once(
    client: TestClient, rig: PipelineRig, train: Any, database: Database, settings: Settings
) -> None:
    from trellis_api.job_pipelines.advance import advance

    pipeline_id = submit(client, [train("a"), train("b")])

    def die() -> None:
        with database.write() as session:
            assert advance(session, settings, pipeline_id=pipeline_id)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        die()
    assert rig.list_jobs() == []
    assert rig.states(pipeline_id) == {"a": "waiting", "b": "waiting"}

    for _ in range(3):
        rig.look()

    assert len(rig.list_jobs()) == 2


def test_a_stage_that_cannot_begin_any_more_fails_alone(
    client: TestClient, rig: PipelineRig, train: Any, database: Database
) -> None:
    pipeline_id = submit(client, [train("a"), train("b", "a"), train("c", "a")])
    rig.look()
    rig.end_stage(pipeline_id, "a")
    rig.look(pipeline_id)
    rig.end_stage(pipeline_id, "b")
    rig.end_stage(pipeline_id, "c")
    rig.look()
    with database.write() as session:
        session.delete(session.get(Model, rig.stages(pipeline_id)["a"].model_id))
        stage = rig.stages(pipeline_id)["b"]
        stage.state = "waiting"
        session.merge(stage)
        from trellis_api.job_pipelines.models import JobPipeline

        session.get(JobPipeline, pipeline_id).is_active = True
    rig.look()

    found = {stage["id"]: stage for stage in read(client, pipeline_id)["stages"]}
    assert (found["b"]["state"], found["b"]["cause"]) == ("failed", "unknown_model")
    assert found["c"]["state"] == "succeeded"


def test_everything_that_is_wrong_is_said_before_anything_runs(
    client: TestClient, rig: PipelineRig, train: Any
) -> None:
    def problems(stages: list[dict[str, Any]]) -> list[tuple[str, str]]:
        answer = client.post("/api/v1/job-pipelines", json={"name": "p", "stages": stages})
        assert (answer.status_code, answer.json()["error"]) == (422, "invalid_job_pipeline"), answer.text
        return [(each["code"], each["field"]) for each in answer.json()["details"]]

    assert problems([train("a"), train("a")]) == [("stage_twice", "stages.1.id")]
    assert problems([train("a", needs=["z"])]) == [("unknown_stage", "stages.0.needs")]
    assert problems([train("a", "b"), train("b", "a")]) == [("stages_in_circle", "stages")]
    assert problems([train("a", exports=False), train("b", "a")]) == [
        ("stage_makes_no_model", "stages.1.model.stage")
    ]
    assert problems([train("a"), train("b", "a", recipe="grop", params={})])[0] == (
        "unknown_recipe",
        "stages.1.recipe",
    )
    assert problems([train("a", params={"learning_rat": 1})])[0] == (
        "unknown_parameter",
        "stages.0.params.learning_rat",
    )
    assert problems([train("a", dataset="ds_zzzzzzzzzzzz")])[0][0] == "unknown_dataset"
    assert rig.list_jobs() == []


def test_a_pipeline_that_is_not_started_waits_and_can_be_deleted(
    client: TestClient, rig: PipelineRig, train: Any
) -> None:
    pipeline_id = submit(client, [train("a")], start=False)
    rig.look()

    assert read(client, pipeline_id)["state"] == "idle"
    assert rig.list_jobs() == []
    assert client.delete(f"/api/v1/job-pipelines/{pipeline_id}").status_code == 204
    assert client.get(f"/api/v1/job-pipelines/{pipeline_id}").status_code == 404


def test_the_agent_template_has_its_stages_in_order(client: TestClient) -> None:
    found = {each["id"]: each for each in client.get("/api/v1/job-pipelines/templates").json()["items"]}

    agent = found["agent"]
    assert [stage["id"] for stage in agent["stages"]] == ["warm-up", "sft", "retrieval", "rl", "evaluation"]
    assert found["reasoning"]["missing_recipes"] == []
