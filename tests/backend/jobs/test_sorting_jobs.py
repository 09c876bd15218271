"""The list of jobs by every column: pages follow each other, rows without a value come last."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.pagination import encode_cursor
from trellis_api.jobs import service
from trellis_api.jobs.fields.sorting import BY_METRIC, JobSort
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.models import Attempt
from trellis_api.sweeps.models import Sweep
from trellis_contracts.states import JobState

LOSS = "val/loss"


def write_curve(database: Database, job_id: str, key: str, values: dict[int, float]) -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        for step, value in values.items():
            metric_store.write(session, job=job, metrics=[(step, {key: value})])


def pages(client: TestClient, **params: Any) -> Iterator[dict[str, Any]]:
    """Every listed job, read two at a time."""
    cursor = None
    while True:
        asked = {**params, "limit": 2, **({"cursor": cursor} if cursor else {})}
        response = client.get("/api/v1/jobs", params=asked)
        assert response.status_code == 200, response.text
        yield from response.json()["items"]
        cursor = response.json()["next_cursor"]
        if cursor is None:
            return


def names(client: TestClient, **params: Any) -> list[str]:
    return [job["name"] for job in pages(client, **params)]


@pytest.fixture
def runs(database: Database, make_job: Callable[..., str]) -> dict[str, str]:
    """Three trainings that differ in everything that sorts, and one that never began."""
    now = utc_now()
    ids = {
        "b": make_job(name="b", recipe="sft", state=JobState.FAILED, tags=("x",), created_at=now),
        "A": make_job(
            name="A", recipe="grpo", state=JobState.SUCCEEDED, is_starred=True, created_at=now + timedelta(1)
        ),
        "c": make_job(
            name="c", recipe="dpo", state=JobState.RUNNING, tags=("a",), created_at=now - timedelta(1)
        ),
        "d": make_job(name="d", recipe="sft", created_at=now - timedelta(2)),
    }
    write_curve(database, ids["b"], LOSS, {step: 3.0 - step * 0.01 for step in range(0, 140, 10)})
    write_curve(database, ids["A"], LOSS, {1: 2.0, 2: 0.5, 200: 2.5})
    write_curve(database, ids["c"], LOSS, {1: 1.0})
    with database.write() as session:
        for name, seconds, steps in (("b", 30, 1), ("A", 20, 3), ("c", 10, 2)):
            job = service.get_locked_job(session, job_id=ids[name])
            job.step, job.total_steps = steps, 4
            end = now + timedelta(seconds=seconds)
            session.add(Attempt(job_id=job.id, number=1, started_at=now, finished_at=end))
        for sweep_id, name in (("swp_a", "rates"), ("swp_b", "Seeds")):
            session.add(Sweep(id=sweep_id, name=name, recipe="grpo", document={}))
        session.flush()
        for name, sweep_id, group in (("A", "swp_a", "Warm"), ("c", "swp_b", "cold")):
            job = service.get_locked_job(session, job_id=ids[name])
            job.sweep_id, job.group = sweep_id, group
    return ids


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("created", "dcbA"),
        ("name", "Abcd"),
        ("state", "dcAb"),
        ("duration", "cAb"),
        ("progress", "bcA"),
        ("tags", "cb"),
        ("sweep", "Ac"),
        ("group", "cA"),
        ("metric_last", "cbA"),
        ("metric_best", "Acb"),
    ],
)
def test_jobs_are_sorted_by_a_column_and_those_without_a_value_come_last(
    client: TestClient, runs: dict[str, str], sort: str, expected: str
) -> None:
    rising = names(client, sort=sort, order="asc", metric=LOSS)
    falling = names(client, sort=sort, order="desc", metric=LOSS)

    assert rising[: len(expected)] == list(expected)
    assert falling[: len(expected)] == list(reversed(expected))
    assert sorted(rising) == sorted(falling) == sorted(runs)


@pytest.mark.parametrize(("sort", "field"), [("recipe", "recipe"), ("starred", "is_starred")])
def test_equal_values_stand_together(client: TestClient, runs: dict[str, str], sort: str, field: str) -> None:
    values = [job[field] for job in pages(client, sort=sort, order="asc")]

    assert values == sorted(values)
    assert len(set(values)) > 1


@pytest.mark.parametrize("sort", sorted(JobSort))
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_neither_repeat_nor_miss_a_job(
    client: TestClient, runs: dict[str, str], sort: str, order: str
) -> None:
    found = [job["id"] for job in pages(client, sort=sort, order=order, metric=LOSS)]

    assert sorted(found) == sorted(runs.values())


def test_a_row_says_the_last_and_the_best_of_its_metric(client: TestClient, runs: dict[str, str]) -> None:
    metric = {job["name"]: job["metric"] for job in pages(client, metric=LOSS)}

    assert metric["A"] == {
        "key": LOSS, "mode": "min", "last": 2.5, "last_step": 200, "best": 0.5, "best_step": 2,
    }  # fmt: skip
    assert metric["b"]["last_step"] == metric["b"]["best_step"] == 130
    assert metric["d"] is None


def test_a_row_says_that_neither_end_of_its_metric_is_better(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    write_curve(database, make_job(name="e"), "actor/entropy", {1: 2.0, 2: 1.0})

    (job,) = pages(client, metric="actor/entropy")

    assert job["metric"] == {
        "key": "actor/entropy", "mode": None, "last": 1.0, "last_step": 2, "best": 2.0, "best_step": 1,
    }  # fmt: skip


def test_without_a_name_a_row_has_the_first_headline_metric_it_reported(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job(recipe="sft")
    headline = client.get(f"/api/v1/jobs/{job_id}").json()["headline_metrics"]
    write_curve(database, job_id, headline[-1], {1: 4.0})
    write_curve(database, job_id, "other", {1: 1.0})

    (job,) = client.get("/api/v1/jobs").json()["items"]

    assert job["metric"]["key"] == headline[-1]


def test_headline_metrics_of_the_validation_are_those_of_the_data_that_was_measured(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    """The rows of agents name their own data sources, one for each kind of task."""
    keys = ["val-core/toolbox/planning/acc/mean@1", "val-core/toolbox/selection/acc/mean@1"]
    agent, plain, unmeasured = (make_job(recipe=name) for name in ("agent_grpo", "grpo", "grpo"))
    for key in (*keys, "val-aux/toolbox/planning/reward/mean@1", "critic/score/mean"):
        write_curve(database, agent, key, {1: 0.5})
    write_curve(database, plain, "val-core/dataset/acc/mean@1", {1: 0.5})

    found = {job["id"]: job["headline_metrics"] for job in client.get("/api/v1/jobs").json()["items"]}

    named = found[plain]
    assert named == found[unmeasured]
    assert named[:2] == ["critic/score/mean", "val-core/dataset/acc/mean@1"]
    assert found[agent] == [named[0], *keys, *named[2:]]
    assert client.get(f"/api/v1/jobs/{agent}").json()["headline_metrics"] == found[agent]


def test_sorting_by_a_metric_needs_its_name(client: TestClient) -> None:
    for sort in BY_METRIC:
        response = client.get("/api/v1/jobs", params={"sort": sort.value})

        assert (response.status_code, response.json()["error"]) == (422, "sort_needs_metric")


def test_a_cursor_of_another_order_is_refused(client: TestClient, runs: dict[str, str]) -> None:
    cursor = client.get("/api/v1/jobs", params={"sort": "name", "limit": 1}).json()["next_cursor"]

    for params in ({"sort": "recipe"}, {"sort": "name", "order": "asc"}, {}):
        assert client.get("/api/v1/jobs", params={**params, "cursor": cursor}).status_code == 422


def test_the_time_before_a_resume_counts(
    client: TestClient, database: Database, runs: dict[str, str]
) -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=runs["b"])
        job.attempt = 2
        now = utc_now()
        session.add(Attempt(job_id=job.id, number=2, started_at=now, finished_at=now + timedelta(seconds=5)))

    assert client.get(f"/api/v1/jobs/{runs['b']}").json()["earlier_run_time_s"] == 30
    assert names(client, sort="duration")[:3] == ["b", "A", "c"]


def test_jobs_are_found_by_a_part_of_a_tag(client: TestClient, make_job: Callable[..., str]) -> None:
    make_job(name="one", tags=("ablation-7",))
    make_job(name="two", tags=("other",))

    assert names(client, text="ABLATION") == ["one"]


@pytest.mark.parametrize("sort", ["created", "name"])
def test_a_made_up_id_in_a_cursor_is_malformed(client: TestClient, sort: str) -> None:
    moment = "2026-01-01T00:00:00+00:00"
    cursor = encode_cursor(sort, "asc", None, None, moment, "a\0", moment)

    response = client.get("/api/v1/jobs", params={"sort": sort, "order": "asc", "cursor": cursor})

    assert (response.status_code, response.json()["error"]) == (422, "invalid_cursor")
