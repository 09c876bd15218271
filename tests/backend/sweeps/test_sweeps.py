"""Sweeps by the API: checks before anything runs, runs as ordinary jobs, stop, resume, early stops."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.forecast import service as forecast
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_api.sweeps.advance import advance
from trellis_api.sweeps.measuring import list_trials
from trellis_contracts.states import JobState
from trellis_testing.sweeps import METRIC, SweepRig

RATES = [1e-5, 3e-5, 1e-4]


@pytest.fixture
def rig(database: Database, settings: Settings) -> SweepRig:
    return SweepRig(database, settings)


@pytest.fixture
def body(model: Model, dataset: Dataset) -> dict[str, Any]:
    return {
        "name": "rates",
        "job": {"recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id},
        "parameters": {"learning_rate": {"values": RATES}},
        "search": {"method": "grid"},
        "objective": {"metric": METRIC},
    }


def create(client: TestClient, body: dict[str, Any], **changes: Any) -> str:
    answer = client.post("/api/v1/sweeps", json={**body, **changes})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def read(client: TestClient, sweep_id: str) -> Any:
    return client.get(f"/api/v1/sweeps/{sweep_id}").json()


def problems(client: TestClient, body: dict[str, Any], **changes: Any) -> dict[str, str]:
    found = client.post("/api/v1/sweeps/preview", json={**body, **changes}).json()
    created = client.post("/api/v1/sweeps", json={**body, **changes})
    assert bool(found["errors"]) == (created.status_code == 422), created.text
    return {each["field"]: each["code"] for each in found["errors"]}


@pytest.mark.smoke
def test_a_grid_runs_every_value_once_and_names_the_best(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body)

    rig.run_through(sweep_id, lambda run: abs(run.values["learning_rate"] - 3e-5))

    found = read(client, sweep_id)
    assert (found["state"], found["planned_runs"], found["counts"]) == ("succeeded", 3, {"succeeded": 3})
    assert [run["values"]["learning_rate"] for run in found["runs"]] == RATES
    assert found["best"]["values"] == {"learning_rate": 3e-5}
    assert (found["best_run"], found["objective"]["mode"], found["objective"]["take"]) == (1, "min", "best")
    assert next(each["values"]["learning_rate"] for each in found["trials"]) == 3e-5


def test_runs_are_ordinary_jobs_that_say_which_sweep_they_are_of(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body)
    rig.look()

    listed = client.get("/api/v1/jobs", params={"sweep": sweep_id}).json()["items"]
    assert listed == client.get("/api/v1/jobs", params={"sweep": "Rates"}).json()["items"]

    assert [job["name"] for job in listed] == ["rates · 3", "rates · 2", "rates · 1"]
    assert {job["sweep"]["name"] for job in listed} == {"rates"}
    assert {job["params"]["learning_rate"] for job in listed} == set(RATES)
    assert listed[0]["keep_best_by"] == {"metric": METRIC, "mode": "min"}
    group = {"group": listed[0]["group"]}
    assert [job["id"] for job in client.get("/api/v1/jobs", params=group).json()["items"]] == [
        listed[0]["id"]
    ]


def test_a_job_can_be_put_into_a_group_and_taken_out(client: TestClient, rig: SweepRig, body: Any) -> None:
    create(client, body)
    rig.look()
    path = f"/api/v1/jobs/{rig.jobs()[0].id}"

    assert client.patch(path, json={"group": " paper "}).json()["group"] == "paper"
    assert client.patch(path, json={"group": ""}).json()["group"] is None


def test_a_clock_that_was_set_back_gives_a_run_no_negative_duration(
    client: TestClient, database: Database, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body)
    rig.look()
    (job_id, *_) = (run.job_id for run in rig.runs(sweep_id))
    assert job_id is not None
    rig.end(job_id)
    with database.write() as session:
        job = session.get_one(Job, job_id)
        assert job.started_at is not None
        job.finished_at = job.started_at - timedelta(hours=1)
        session.add(job)

    assert read(client, sweep_id)["runs"][0]["duration_s"] == 0


def test_seeds_alone_are_a_sweep_with_a_mean_and_a_spread(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, {**body, "parameters": {}, "seeds": [1, 2, 3], "search": {"method": "random"}})

    rig.run_through(sweep_id, lambda run: float(run.seed))

    found = read(client, sweep_id)
    assert [run["seed"] for run in found["runs"]] == [1, 2, 3]
    assert len({job.group for job in rig.jobs()}) == 1
    assert found["best"]["mean"] == pytest.approx(2.0)
    assert found["best"]["spread"] == pytest.approx(1.0)


def test_never_more_runs_at_a_time_than_asked_for(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body, parallel=1)
    counts = []
    for _ in range(3):
        rig.look()
        rig.look()
        counts.append(len(rig.active()))
        (job,) = rig.active()
        rig.measure(job.id, 1, 1.0)
        rig.end(job.id)
    rig.look()

    assert counts == [1, 1, 1]
    assert read(client, sweep_id)["state"] == "succeeded"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"parameters": {"learning_rat": {"values": [1, 2]}}},
         {"parameters.learning_rat": "unknown_parameter"}),
        ({"parameters": {"learning_rate": {"values": [1e-5, -1]}}},
         {"parameters.learning_rate": "invalid_value"}),
        ({"parameters": {"learning_rate": {"min": 1e-6, "max": 1e-4}}},
         {"parameters.learning_rate": "no_points"}),
        ({"parameters": {"rewards": {"values": ["a"]}}}, {"parameters.rewards": "not_variable"}),
        ({"search": {"method": "random"}, "parameters": {"learning_rate": {"min": 1e-6, "max": 1e-4}}},
         {"budget.runs": "no_budget"}),
        ({"parallel": 5}, {"parallel": "too_parallel"}),
        ({"parameters": {"seed": {"values": [1, 2]}}}, {"parameters.seed": "not_variable"}),
        ({"search": {"method": "asha"}, "budget": {"runs": 3}}, {"early_stop": "no_early_stop"}),
        ({"parameters": {"learning_rate": {"min": 1, "max": 9, "count": 50},
                         "group_size": {"min": 1, "max": 90, "step": 1}}}, {"budget.runs": "too_many_runs"}),
        ({"parameters": {"group_size": {"min": 2, "max": 8, "step": 1.5}}},
         {"parameters.group_size": "invalid_value"}),
        ({"parameters": {"group_size": {"min": 0.5, "max": 8, "scale": "log", "count": 3}}},
         {"parameters.group_size": "invalid_value"}),
        ({"seeds": [1, 2, 3], "budget": {"runs": 2}}, {"budget.runs": "too_few_runs"}),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_with_its_field_before_anything_runs(
    client: TestClient, rig: SweepRig, body: dict[str, Any], changes: dict[str, Any], wrong: dict[str, str]
) -> None:
    assert problems(client, body, **changes) == wrong
    rig.look()
    assert rig.jobs() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {}, "seeds": [1]},
        {"seeds": [1, 1]},
        {"job": {"recipe": "grpo", "model": "m", "dataset": "d", "export_as": {"name": "x"}}},
        {"parameters": {"learning_rate": {"values": []}}},
        {"unknown": 1},
    ],
)
def test_a_request_that_contradicts_itself_is_malformed(
    client: TestClient, body: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert client.post("/api/v1/sweeps", json={**body, **changes}).status_code == 422


def test_an_engine_key_varies_too_and_an_unknown_one_is_refused(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    key = "overrides.actor_rollout_ref.actor.optim.weight_decay"
    create(client, body, parameters={key: {"values": [0.0, 0.1]}})
    rig.look()

    assert [list(job.overrides.values()) for job in rig.jobs()] == [[0.0], [0.1]]
    wrong = {f"{key}s": {"values": [0.0, 0.1]}}
    assert problems(client, body, parameters=wrong) == {f"parameters.{key}s": "unknown_engine_key"}


def test_a_stopped_sweep_goes_on_where_it_was(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body, parallel=2)
    rig.look()
    running, queued = rig.active()
    rig.start(running.id)

    assert client.post(f"/api/v1/sweeps/{sweep_id}/stop").json()["state"] == "stopping"
    assert client.delete(f"/api/v1/sweeps/{sweep_id}").json()["error"] == "sweep_running"
    rig.look()
    assert {job.state for job in rig.jobs()} == {JobState.STOPPING, JobState.STOPPED}
    rig.end(running.id, JobState.STOPPED)
    rig.look()
    stopped = read(client, sweep_id)
    assert (stopped["state"], stopped["can_resume"], len(stopped["runs"])) == ("stopped", True, 2)

    assert client.post(f"/api/v1/sweeps/{sweep_id}/resume").json()["state"] == "running"
    rig.run_through(sweep_id, lambda run: run.values["learning_rate"])

    found = read(client, sweep_id)
    assert (found["state"], found["counts"]) == ("succeeded", {"succeeded": 3})
    assert len(rig.jobs()) == 3
    assert {job.attempt for job in rig.jobs() if job.id in (running.id, queued.id)} == {2}
    assert client.post(f"/api/v1/sweeps/{sweep_id}/resume").json()["error"] == "sweep_finished"


def test_a_crashed_run_goes_on_and_a_failed_one_does_not(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body)
    rig.look()
    first, second, third = rig.active()
    rig.end(first.id, JobState.CRASHED, reason="the node was lost")
    rig.end(second.id, JobState.FAILED, reason="loss is NaN")
    rig.measure(third.id, 1, 1.0)
    rig.end(third.id)
    rig.look()

    assert [job.id for job in rig.active()] == [first.id]
    rig.run_through(sweep_id, lambda run: 2.0)
    found = read(client, sweep_id)
    assert (found["state"], found["counts"]) == ("succeeded", {"succeeded": 2, "failed": 1})
    assert found["runs"][1]["problem"] == "loss is NaN"


def test_three_failures_and_nothing_else_end_a_sweep_with_the_reason(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body, parameters={"learning_rate": {"values": [1e-6, 2e-6, 3e-6, 4e-6, 5e-6]}})
    for _ in range(4):
        rig.look()
        if rig.active():
            rig.end(rig.active()[0].id, JobState.FAILED, reason="out of memory")
    for job in rig.active():
        rig.end(job.id, JobState.STOPPED)
    rig.look()

    found = read(client, sweep_id)
    assert (found["state"], found["cause"]) == ("failed", "sweep_runs_failed")
    assert "out of memory" in found["reason"]
    assert len(rig.jobs()) < 5 + 1


def test_a_metric_that_is_never_reported_ends_the_sweep_and_lists_those_that_are(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body, objective={"metric": "val/nonsense"}, parallel=1)
    rig.look()
    (job,) = rig.active()
    rig.measure(job.id, 1, 1.0, key="val/loss")
    rig.end(job.id)
    rig.look()

    found = read(client, sweep_id)
    assert (found["state"], found["cause"]) == ("failed", "sweep_metric_missing")
    assert "val/loss" in found["reason"]


def test_a_metric_of_the_recipe_is_read_from_the_data_source_that_runs_report(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    goal = {"metric": "val-core/dataset/acc/mean@1", "mode": "max"}
    sweep_id = create(client, body, objective=goal, parallel=1)
    for value in (0.2, 0.6, 0.4):
        rig.look()
        (job,) = rig.active()
        rig.measure(job.id, 1, value, key="val-core/linksearch/reward/mean@1")
        rig.end(job.id)
    rig.look()

    found = read(client, sweep_id)
    assert (found["state"], found["best_run"]) == ("succeeded", 1)
    assert [run["value"] for run in found["runs"]] == [0.2, 0.6, 0.4]


def test_a_run_whose_last_value_is_no_number_does_not_end_the_sweep(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    goal = {"metric": METRIC, "mode": "min", "take": "last"}
    sweep_id = create(client, body, objective=goal, parallel=1)
    rig.look()
    (job,) = rig.active()
    rig.start(job.id)
    rig.measure(job.id, 1, 1.0)
    rig.measure(job.id, 2, float("nan"))
    rig.end(job.id)

    rig.run_through(sweep_id, lambda run: run.values["learning_rate"])

    found = read(client, sweep_id)
    assert (found["state"], found["cause"], found["counts"]) == ("succeeded", None, {"succeeded": 3})
    assert found["best_run"] == 1


def test_a_run_that_a_person_resumes_leaves_a_finished_sweep_as_it_ended(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(
        client, body, search={"method": "asha"}, budget={"runs": 3},
        early_stop={"rule": "asha", "min_steps": 1, "min_runs": 3},
    )  # fmt: skip
    rig.look()
    for job, value in zip(rig.active(), (1.0, 2.0, 3.0), strict=True):
        rig.start(job.id)
        rig.measure(job.id, 1, value)
    rig.look()
    jobs = rig.jobs()
    for job in jobs:
        rig.end(job.id, JobState.STOPPED if job.state == JobState.STOPPING else JobState.SUCCEEDED)
    rig.look()
    assert read(client, sweep_id)["state"] == "succeeded"
    pruned = next(job for job in jobs if job.state == JobState.STOPPING)

    assert client.post(f"/api/v1/jobs/{pruned.id}/resume").status_code == 200
    rig.look()
    assert read(client, sweep_id)["state"] == "succeeded"
    rig.start(pruned.id)
    rig.measure(pruned.id, 2, 0.25)
    rig.end(pruned.id)
    rig.look()

    found = read(client, sweep_id)
    run = next(each for each in found["runs"] if each["job"]["id"] == pruned.id)
    assert (found["state"], run["state"], run["value"]) == ("succeeded", "succeeded", 0.25)
    assert rig.look().stopping == []


def test_a_trial_whose_seeds_have_not_all_finished_ranks_below_and_tells_the_search_nothing(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    rates = {"learning_rate": {"values": RATES[:2]}}
    sweep_id = create(client, body, parameters=rates, seeds=[1, 2], parallel=4)
    rig.look()
    runs = {run.job_id: run for run in rig.runs(sweep_id)}
    for job in rig.active():
        run = runs[job.id]
        rig.start(job.id)
        rig.measure(job.id, 1, float(run.index))
        rig.end(job.id, JobState.FAILED if run.index == 0 else JobState.SUCCEEDED)
    rig.look()

    whole, part = read(client, sweep_id)["trials"]
    assert (whole["trial"], whole["mean"], whole["finished_seeds"]) == (1, 2.5, 2)
    assert (part["trial"], part["mean"], part["run_count"]) == (0, 1.0, 1)
    assert (part["finished_seeds"], part["planned_seeds"]) == (1, 2)
    listed = list_trials(rig.runs(sweep_id), {job.id: job for job in rig.jobs()})
    assert [each.value for each in listed] == [None, 2.5]


def test_the_preview_of_a_sweep_forecasts_nothing_for_each_of_its_runs(
    client: TestClient, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a forecast was asked for")

    monkeypatch.setattr(forecast, "forecast", refuse)

    assert client.post("/api/v1/sweeps/preview", json=body).json()["errors"] == []


def test_asha_stops_the_worse_runs_at_a_rung(client: TestClient, rig: SweepRig, body: dict[str, Any]) -> None:
    sweep_id = create(
        client, body, search={"method": "asha"}, budget={"runs": 3},
        early_stop={"rule": "asha", "min_steps": 4, "min_runs": 3},
    )  # fmt: skip
    rig.look()
    jobs = rig.active()
    for job in jobs:
        rig.start(job.id)
        rig.measure(job.id, 2, 9.0)
    assert rig.look().stopping == []
    for job, value in zip(jobs, (1.0, 2.0, 3.0), strict=True):
        rig.measure(job.id, 5, value)

    assert sorted(rig.look().stopping) == sorted(job.id for job in jobs[1:])
    assert rig.look().stopping == []
    for job in jobs[1:]:
        rig.end(job.id, JobState.STOPPED)
    rig.measure(jobs[0].id, 9, 0.5)
    rig.end(jobs[0].id)
    rig.look()

    found = read(client, sweep_id)
    assert (found["state"], found["counts"]) == ("succeeded", {"succeeded": 1, "pruned": 2})
    assert found["best_run"] == 0
    reasons = [run["prune_reason"] for run in found["runs"]]
    assert reasons[0] is None
    assert all("rule asha: at step" in reason for reason in reasons[1:])
    assert {run["problem"] for run in found["runs"]} == {None}
    told = client.get(f"/api/v1/jobs/{jobs[2].id}").json()
    assert told["state"] == "stopped"


def test_hours_that_are_used_up_let_runs_end_and_begin_no_more(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body, parallel=2, budget={"hours": 1e-7})
    with rig.database.write() as session:
        advance(session, rig.settings, sweep_id=sweep_id)

    found = read(client, sweep_id)
    assert (found["state"], found["cause"], found["runs"]) == ("failed", "sweep_hours_used", [])


def test_slot_hours_that_are_used_up_let_runs_end_and_begin_no_more(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body, parallel=1, budget={"slot_hours": 1e-9})
    rig.run_through(sweep_id, lambda run: 1.0)

    found = read(client, sweep_id)
    assert (found["state"], found["cause"], len(found["runs"])) == ("succeeded", "sweep_hours_used", 1)
    assert "slot-hours" in found["reason"]


def test_a_deleted_sweep_leaves_its_jobs(client: TestClient, rig: SweepRig, body: dict[str, Any]) -> None:
    sweep_id = create(client, body)
    rig.run_through(sweep_id, lambda run: 1.0)

    assert client.delete(f"/api/v1/sweeps/{sweep_id}").status_code == 204
    assert client.get(f"/api/v1/sweeps/{sweep_id}").json()["error"] == "sweep_not_found"
    assert [job["sweep"] for job in client.get("/api/v1/jobs").json()["items"]] == [None] * 3


def test_a_deleted_job_leaves_what_its_run_measured(
    client: TestClient, rig: SweepRig, body: dict[str, Any]
) -> None:
    sweep_id = create(client, body)
    rig.run_through(sweep_id, lambda run: run.values["learning_rate"])
    assert client.delete(f"/api/v1/jobs/{rig.runs(sweep_id)[0].job_id}").status_code == 204

    run = read(client, sweep_id)["runs"][0]
    assert (run["state"], run["value"]) == ("deleted", 1e-5)


def test_yaml_with_names_is_the_same_sweep_and_mistakes_have_lines(
    client: TestClient, body: dict[str, Any], model: Model, dataset: Dataset
) -> None:
    text = f"""
name: rates
job: {{recipe: grpo, preset: cpu-tiny, model: {model.name}, dataset: {dataset.name}}}
parameters:
  learning_rate: {{values: [1.0e-5, 1.0e-4]}}
search: {{method: grid}}
"""
    found = client.post("/api/v1/sweeps/check", json={"yaml": text}).json()
    assert found["problems"] == []
    assert found["document"]["job"]["model"] == model.id

    wrong = text.replace("learning_rate", "learning_rat")
    (problem,) = client.post("/api/v1/sweeps/check", json={"yaml": wrong}).json()["problems"]
    assert (problem["line"], problem["code"]) == (5, "unknown_parameter")


@pytest.mark.parametrize("method", ["pbt", "PB2"])
def test_population_based_training_is_refused_by_name_with_the_reason(
    client: TestClient, body: dict[str, Any], method: str
) -> None:
    request = {"name": "sweep", "job": body, "seeds": [1, 2], "search": {"method": method}}

    response = client.post("/api/v1/sweeps/preview", json=request)

    assert response.status_code == 422
    assert f"{method} is not supported: it changes parameters in the middle of a run" in response.text


def test_each_run_begins_in_a_transaction_of_its_own(
    client: TestClient, rig: SweepRig, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = create(client, body, parallel=3)
    begun: list[int] = []
    write = rig.database.write

    @contextmanager
    def counted() -> Iterator[Any]:
        before = len(rig.runs(sweep_id))
        with write() as session:
            yield session
        begun.append(len(rig.runs(sweep_id)) - before)

    monkeypatch.setattr(rig.database, "write", counted)
    rig.look()

    assert sum(begun) == 3
    assert max(begun) == 1
    assert len(rig.active()) == 3
