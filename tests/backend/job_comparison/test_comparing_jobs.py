"""Runs side by side: what they differ in, their curves and tables, and answers to the same prompts."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.jobs import service
from trellis_api.jobs.alarms.models import Alarm
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups, metric_series
from trellis_api.jobs.models import Job, RolloutSample
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

LOSS = "val/loss"


def read(client: TestClient, path: str = "", *, ids: list[str], **query: Any) -> Any:
    response = client.get(f"/api/v1/jobs/compare{path}", params={"ids": ",".join(ids), **query})
    assert response.status_code == 200, response.text
    return response.json()


def write(database: Database, job_id: str, **curves: dict[int, float]) -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        for key, values in curves.items():
            metric_store.write(
                session, job=job, metrics=[(step, {key: value}) for step, value in values.items()]
            )


def add_response(database: Database, job_id: str, prompt: str, response: str, *, step: int = 1) -> None:
    sample = RolloutSample(
        job_id=job_id, attempt=1, step=step, split="validation", group=prompt, prompt=prompt,
        response=response, response_tokens=3, score=0.5,
    )  # fmt: skip
    with database.write() as session:
        session.add(sample)


@pytest.mark.smoke
def test_only_settings_that_differ_are_listed(client: TestClient, make_job: Callable[..., str]) -> None:
    a = make_job(params={"learning_rate": 1e-4, "lora": {"rank": 8}, "epochs": 1}, seed=1)
    b = make_job(params={"learning_rate": 2e-4, "lora": {"rank": 8}, "epochs": 1}, seed=2)
    c = make_job(params={"learning_rate": 2e-4, "lora": {"rank": 16}}, seed=3)

    found = read(client, ids=[c, a, b])

    assert [job["id"] for job in found["jobs"]] == [c, a, b]
    rows = {f"{row['group']}.{row['name']}": row["values"] for row in found["parameters"]}
    assert rows == {
        "run.seed": {a: 1, b: 2, c: 3},
        "params.learning_rate": {a: 1e-4, b: 2e-4, c: 2e-4},
        "params.lora.rank": {a: 8, b: 8, c: 16},
    }
    assert found["seed_groups"] == []


def test_a_default_is_the_same_as_its_value_typed_out(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    unsaid = make_job(recipe="grpo", params={}, seed=1)
    typed = make_job(recipe="grpo", params={"learning_rate": 1e-6, "temperature": 1}, seed=2)
    other = make_job(recipe="grpo", params={"learning_rate": 3e-6}, seed=1)

    found = read(client, ids=[unsaid, typed, other])

    rows = {f"{row['group']}.{row['name']}": row["values"] for row in found["parameters"]}
    assert rows == {
        "run.seed": {unsaid: 1, typed: 2, other: 1},
        "params.learning_rate": {unsaid: 1e-6, typed: 1e-6, other: 3e-6},
    }
    assert found["seed_groups"] == [[unsaid, typed]]


def test_what_presets_and_recipes_set_differently_is_listed(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    tiny = make_job(recipe="sft", preset="cpu-tiny", params={"epochs": 2})
    small = make_job(recipe="sft", preset="cpu-small", params={"epochs": 2})
    other = make_job(recipe="grpo", preset="cpu-tiny", params={"epochs": 2})

    rows = {row["name"]: row["values"] for row in read(client, ids=[tiny, small])["parameters"]}
    across = {row["name"]: row["values"] for row in read(client, ids=[tiny, other])["parameters"]}

    assert (rows["batch_size"], "epochs" in rows) == ({tiny: 32, small: 8}, False)
    assert across["learning_rate"] == {tiny: 0.002, other: 0.0002}
    assert "group_size" not in across  # sft has none: nothing to compare


def test_the_job_that_made_the_model_and_its_step_are_settings_of_their_own(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    source = make_job(name="base run")
    with database.write() as session:
        for step, model_id in ((10, "mdl_earlier"), (20, "mdl_later")):
            session.add(
                Model(
                    id=model_id, name=model_id, state="ready", source={}, warnings=[],
                    lineage={"job_id": source, "job_name": "base run", "step": step},
                )
            )  # fmt: skip
    a, b, c = make_job(model_id="mdl_earlier"), make_job(model_id="mdl_later"), make_job()

    rows = {row["name"]: row["values"] for row in read(client, ids=[a, b, c])["parameters"]}

    assert rows["trained_by"] == {a: "base run", b: "base run"}
    assert rows["trained_by_step"] == {a: 10, b: 20}


def test_jobs_that_differ_in_the_seed_alone_are_a_group(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    ids = [make_job(params={"rate": 1}, seed=seed, name=f"seed {seed}") for seed in (1, 2, 2)]
    other = make_job(params={"rate": 2}, seed=3)
    twin = make_job(params={"rate": 2}, seed=3)

    assert read(client, ids=[*ids, other, twin])["seed_groups"] == [ids]


def test_the_table_has_last_and_best_of_every_job(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b = make_job(recipe="sft"), make_job(recipe="sft")
    write(database, a, **{LOSS: {1: 3.0, 2: 1.0, 3: 2.0}, "own": {1: 1.0}})
    write(database, b, **{LOSS: {1: 2.5}})

    found = read(client, ids=[a, b])
    named = read(client, ids=[a, b], keys=["own", "nobody/has"])

    row = next(row for row in found["metrics"] if row["key"] == LOSS)
    assert (row["mode"], row["values"][a]["last"], row["values"][a]["best"]) == ("min", 2.0, 1.0)
    assert (row["values"][a]["best_step"], row["values"][b]["last"]) == (2, 2.5)
    assert found["metric_keys"][0] == {"key": LOSS, "run_count": 2}
    assert [row["key"] for row in named["metrics"]] == ["own"]


def test_compared_jobs_have_the_alarms_of_all_attempts(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b = make_job(), make_job()
    with database.write() as session:
        for attempt, code in ((1, "loss_not_finite"), (2, "kl_exploding")):
            alarm = Alarm(
                job_id=a, attempt=attempt, code=code, severity="critical", metric="actor/loss", step=3,
                first_step=3, last_step=4, is_active=attempt == 2,
            )  # fmt: skip
            session.add(alarm)

    jobs = {job["id"]: job for job in read(client, ids=[a, b])["jobs"]}

    assert [(each["attempt"], each["code"]) for each in jobs[a]["alarms"]] == [
        (2, "kl_exploding"),
        (1, "loss_not_finite"),
    ]
    assert jobs[b]["alarms"] == []


def test_a_deleted_job_is_named_and_the_rest_compared(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    job_id, gone = make_job(), new_id("job")

    found = read(client, ids=[gone, job_id])

    assert ([job["id"] for job in found["jobs"]], found["missing"]) == ([job_id], [gone])
    assert client.get("/api/v1/jobs/compare", params={"ids": gone}).status_code == 404


@pytest.mark.parametrize("ids", ["", ",", "job_x", "../etc", ",".join(new_id("job") for _ in range(21))])
def test_a_request_that_names_no_comparable_jobs_is_refused(client: TestClient, ids: str) -> None:
    response = client.get("/api/v1/jobs/compare", params={"ids": ids})

    assert (response.status_code, response.json()["error"]) == (422, "invalid_comparison")


def test_curves_of_several_jobs_come_in_one_answer(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b = make_job(), make_job()
    write(database, a, loss={step: float(step % 7) for step in range(300)}, other={1: 1.0})
    write(database, b, loss={5: 1.5})

    runs = read(client, "/metrics", ids=[b, a], keys=["loss"], max_points=50)["runs"]

    assert [run["job_id"] for run in runs] == [b, a]
    assert [[series["key"] for series in run["series"]] for run in runs] == [["loss"], ["loss"]]
    assert runs[0]["series"][0]["steps"] == [5]
    long = runs[1]["series"][0]
    assert (len(long["steps"]) <= 50, long["is_downsampled"], long["steps"][-1]) == (True, True, 299)


def test_responses_stand_beside_each_other_by_their_prompt(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b = make_job(), make_job()
    for prompt in ("one", "two", "only a"):
        add_response(database, a, prompt, f"a on {prompt}", step=4)
    add_response(database, a, "one", "of an older step", step=2)
    for prompt in ("two", "one"):
        add_response(database, b, prompt, f"b on {prompt}", step=9)

    found = read(client, "/rollouts", ids=[a, b])
    second = read(client, "/rollouts", ids=[a, b], offset=1, limit=1)

    assert (found["total"], found["steps"]) == (2, {a: 4, b: 9})
    texts = {
        item["prompt"]: [[each["response"] for each in item["responses"][job]] for job in (a, b)]
        for item in found["items"]
    }
    assert texts == {"one": [["a on one"], ["b on one"]], "two": [["a on two"], ["b on two"]]}
    assert second["items"] == found["items"][1:]
    # The choices are the page's, which has them since its first prompts.
    assert (found["available_steps"], second["available_steps"]) == ([2, 4, 9], [])


def test_the_newest_steps_of_a_job_are_listed_each_once(
    database: Database, make_job: Callable[..., str]
) -> None:
    a, b = make_job(), make_job()
    for step in (7, 3, 12, 3, 7, 5):
        add_response(database, a, "one", "a", step=step)
    add_response(database, b, "one", "b", step=99)

    with database.read() as session:
        found = [
            rollout_store.list_newest_steps(session, job_id=job_id, split=split, limit=limit)
            for job_id, split, limit in (
                (a, "validation", 9),
                (a, "validation", 2),
                (a, "train", 9),
                ("job_none", "validation", 9),
            )
        ]

    assert found == [[12, 7, 5, 3], [12, 7], [], []]


def test_a_job_without_responses_is_named_and_the_others_compared(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b, silent = make_job(), make_job(), make_job()
    for job_id in (a, b):
        add_response(database, job_id, "one", f"{job_id} on one", step=3)
    add_response(database, a, "two", "a on two", step=4)

    found = read(client, "/rollouts", ids=[a, silent, b], step=3)
    later = read(client, "/rollouts", ids=[a, silent, b], step=4)
    none = read(client, "/rollouts", ids=[silent])

    assert (found["total"], found["steps"], found["without"]) == (1, {a: 3, b: 3}, [silent])
    assert set(found["items"][0]["responses"]) == {a, b}
    assert (later["steps"], later["without"], later["total"]) == ({a: 4}, [silent, b], 1)
    assert (none["items"], none["without"]) == ([], [silent])
    assert found["available_steps"] == later["available_steps"] == [3, 4]
    assert none["available_steps"] == []


def rollups_of(series: int, points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as the store writes them for whole buckets."""
    rows = []
    for start in range(0, len(points) // ROLLUP_STEPS * ROLLUP_STEPS, ROLLUP_STEPS):
        part = points[start : start + ROLLUP_STEPS]
        low, high = min(part, key=lambda point: point["value"]), max(part, key=lambda point: point["value"])
        rows.append(
            {
                "series_id": series,
                "bucket": start // ROLLUP_STEPS,
                "count": len(part),
                "min_step": low["step"],
                "min_value": low["value"],
                "max_step": high["step"],
                "max_value": high["value"],
            }
        )
    return rows


@pytest.mark.slow
def test_twenty_runs_of_100_000_points_take_less_than_300_ms_of_a_processor(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    points = 100_000
    ids = [make_job(state=JobState.SUCCEEDED, name=f"long {number}") for number in range(20)]
    with database.write() as session:
        connection = session.connection()
        for number, job_id in enumerate(ids):
            connection.execute(insert(metric_series), {"job_id": job_id, "key": LOSS})
            (series,) = connection.exec_driver_sql("SELECT max(id) FROM metric_series").one()
            rows = [
                {"series_id": series, "step": step, "value": float((step * 7919 + number) % 1000)}
                for step in range(points)
            ]
            connection.execute(insert(metric_points), rows)
            job = session.get_one(Job, job_id)
            job.metric_step = points - 1
            session.add(job)
            connection.execute(insert(metric_rollups), rollups_of(series, rows))

    def measure(path: str, **query: Any) -> float:
        """Seconds of this process: the machine may be busy with other suites."""
        read(client, path, ids=ids, **query)  # what is loaded once is not measured
        times = []
        for _ in range(3):
            started = time.process_time()
            read(client, path, ids=ids, **query)
            times.append(time.process_time() - started)
        return min(times)

    table, curves = measure(""), measure("/metrics", keys=[LOSS])
    print(f"table {table * 1000:.0f} ms, curves {curves * 1000:.0f} ms")
    assert max(table, curves) < 0.3
