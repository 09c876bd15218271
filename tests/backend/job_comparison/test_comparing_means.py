"""Means over seeds: those of single steps that all seeds have, whatever the length of the curves."""

import random
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.jobs import service
from trellis_api.jobs.metrics import means
from trellis_api.jobs.metrics import store as metric_store


def write(database: Database, job_id: str, values: Mapping[int, float], key: str = "loss") -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        metric_store.write(session, job=job, metrics=[(step, {key: value}) for step, value in values.items()])


def read(client: TestClient, *groups: list[str], status: int = 200, **query: Any) -> Any:
    asked = {"groups": [",".join(ids) for ids in groups], "keys": ["loss"], **query}
    response = client.get("/api/v1/jobs/compare/means", params=asked)
    assert response.status_code == status, response.text
    return response.json()


@pytest.mark.smoke
def test_mean_and_deviation_are_those_of_single_steps(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    noise = random.Random(3)
    seeds = {
        make_job(seed=seed): {step: noise.gauss(1 / (1 + step), 0.1) for step in range(1, 6_001)}
        for seed in (1, 2, 3)
    }
    for job_id, values in seeds.items():
        write(database, job_id, values)

    (group,) = read(client, list(seeds), max_points=100)["groups"]
    (part,) = read(client, list(seeds), max_points=100, from_step=300, to_step=350)["groups"]

    assert group["job_ids"] == list(seeds)
    for found in (group["series"][0], part["series"][0]):
        rows = [[values[step] for values in seeds.values()] for step in found["steps"]]
        assert found["means"] == pytest.approx([statistics.fmean(row) for row in rows])
        assert found["deviations"] == pytest.approx([statistics.stdev(row) for row in rows])
    long = group["series"][0]
    assert (len(long["steps"]), long["stride"], long["steps"][0]) == (100, 60, 1)
    true = statistics.fmean(
        statistics.stdev(values[step] for values in seeds.values()) for step in range(1, 6_001)
    )
    assert statistics.fmean(long["deviations"]) == pytest.approx(true, rel=0.15)
    assert (part["series"][0]["steps"], part["series"][0]["stride"]) == (list(range(300, 351)), 1)


def test_steps_that_only_some_seeds_have_are_left_out(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b, c, d = (make_job(seed=seed) for seed in (1, 2, 3, 4))
    write(database, a, dict.fromkeys(range(0, 1000), 1.0))
    write(database, b, dict.fromkeys(range(5, 900, 10), 3.0) | {25: float("nan")})
    write(database, c, dict.fromkeys(range(2000, 2010), 5.0))

    groups = read(client, [a, b], [a, c], [a, d], max_points=2_000)["groups"]
    short = read(client, [a, b], max_points=10)["groups"][0]["series"][0]

    (both,) = groups[0]["series"]
    assert both["steps"] == [step for step in range(5, 900, 10) if step != 25]
    assert set(both["means"]) == {2.0}
    assert both["deviations"] == pytest.approx([2**0.5] * len(both["steps"]))
    assert [group["series"] for group in groups[1:]] == [[], []]
    assert (len(short["steps"]), set(short["steps"]) <= set(both["steps"])) == (10, True)


def test_groups_of_one_job_and_of_none_are_refused(client: TestClient, make_job: Callable[..., str]) -> None:
    a = make_job()

    assert read(client, [a], status=422)["error"] == "invalid_comparison"
    assert read(client, [a, "evil"], status=422)["error"] == "invalid_comparison"
    assert read(client, [a, new_id("job")])["groups"] == [{"job_ids": [a], "series": []}]


def test_steps_beyond_what_can_be_reckoned_with_are_left_out(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b = make_job(seed=1), make_job(seed=2)
    write(database, a, {1: 1.0, 2: 1e200, 3: 1.7e308, 4: 1e153})
    write(database, b, {1: 3.0, 2: -1e200, 3: 1.7e308, 4: 1e153})

    (found,) = read(client, [a, b])["groups"][0]["series"]

    assert (found["steps"], found["means"]) == ([1, 4], [2.0, 1e153])


def test_a_step_that_went_with_a_resume_meanwhile_is_left_out(
    client: TestClient, database: Database, make_job: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = make_job(seed=1), make_job(seed=2)
    write(database, a, {1: 1.0, 2: 1.0, 3: float("nan")})
    write(database, b, {1: 3.0, 3: 1.0})
    monkeypatch.setattr(means, "_list_shared", lambda *_: [1, 2, 3])

    (found,) = read(client, [a, b])["groups"][0]["series"]
    monkeypatch.setattr(means, "_list_shared", lambda *_: [2])
    none = read(client, [a, b])["groups"][0]["series"]

    assert (found["steps"], found["means"], none) == ([1], [2.0], [])
