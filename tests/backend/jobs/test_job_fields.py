"""Fields of the job list: parameters and metrics as columns, and the list sorted by them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store
from trellis_recipes.catalogue import get_recipe

LOSS = "val/loss"
RATE, LOSS_TYPE = "parameters.learning_rate", "parameters.loss_type"


def write_curve(database: Database, job_id: str, key: str, values: dict[int, float]) -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        metric_store.write(session, job=job, metrics=[(step, {key: value}) for step, value in values.items()])


def listed(client: TestClient, **params: Any) -> dict[str, dict[str, Any]]:
    response = client.get("/api/v1/jobs", params=params)
    assert response.status_code == 200, response.text
    return {job["name"]: job["fields"] for job in response.json()["items"]}


def names(client: TestClient, **params: Any) -> list[str]:
    """The listed jobs, read two at a time."""
    found: list[str] = []
    cursor = None
    while True:
        page = client.get(
            "/api/v1/jobs", params={**params, "limit": 2, **({"cursor": cursor} if cursor else {})}
        )
        assert page.status_code == 200, page.text
        found += [job["name"] for job in page.json()["items"]]
        cursor = page.json()["next_cursor"]
        if cursor is None:
            return found


@pytest.fixture
def runs(database: Database, make_job: Callable[..., str]) -> dict[str, str]:
    """Trainings whose rate is given, the preset's and the recipe's, and one job that trains nothing."""
    now = utc_now()
    ids = {
        name: make_job(name=name, recipe="sft", created_at=now + timedelta(seconds=place), **more)
        for place, (name, more) in enumerate(
            {
                "given": {"params": {"learning_rate": 0.5}},
                "preset": {"preset": "cpu-tiny"},
                "default": {},
                "low": {"params": {"learning_rate": 1e-9}},
                "export": {"kind": "export"},
            }.items()
        )
    }
    write_curve(database, ids["given"], LOSS, {1: 3.0, 100: 1.0, 150: 2.0})
    write_curve(database, ids["low"], LOSS, {1: 2.0, 100: 5.0})
    write_curve(database, ids["default"], LOSS, {1: 4.0, 99: 0.5, 101: 0.6})
    return ids


def test_a_parameter_is_what_was_given_else_the_presets_else_the_default(
    client: TestClient, runs: dict[str, str]
) -> None:
    recipe = get_recipe("sft")
    preset = next(each for each in recipe.presets if each.id == "cpu-tiny")
    parameter = recipe.parameter("learning_rate")
    assert parameter is not None

    rates = {name: fields[RATE] for name, fields in listed(client, fields=RATE).items()}

    assert rates == {
        "given": 0.5,
        "preset": preset.params.get("learning_rate", parameter.default),
        "default": parameter.default,
        "low": 1e-9,
        "export": None,
    }


def test_a_metric_is_the_last_the_best_or_that_of_one_step(client: TestClient, runs: dict[str, str]) -> None:
    fields = [f"metrics.last.{LOSS}", f"metrics.best.{LOSS}", f"metrics.at.100.{LOSS}", "metrics.last.none"]

    values = {name: [own[field] for field in fields] for name, own in listed(client, fields=fields).items()}

    assert values["given"] == [2.0, 1.0, 1.0, None]
    # Its neighbours do not stand for the step at which nothing was measured.
    assert values["default"] == [0.6, 0.5, None, None]
    assert values["preset"] == values["export"] == [None] * 4


def test_a_job_that_is_read_alone_has_fields_and_says_which_values_are_better(
    client: TestClient, make_job: Callable[..., str], database: Database
) -> None:
    job_id = make_job(recipe="sft", keep_best_by={"metric": "own/mae_like", "mode": "min"})
    write_curve(database, job_id, LOSS, {1: 3.0, 2: 1.0})
    fields = [
        RATE,
        f"metrics.last.{LOSS}",
        "metrics.best.own/mae_like",
        "metrics.last.reward",
        "metrics.last.actor/entropy",
    ]

    found = client.get(f"/api/v1/jobs/{job_id}", params={"fields": fields}).json()
    (row,) = client.get("/api/v1/jobs", params={"fields": fields}).json()["items"]
    unknown = client.get(f"/api/v1/jobs/{job_id}", params={"fields": "parameters.learning_rat"})

    assert found["fields"][f"metrics.last.{LOSS}"] == 1.0
    assert found["field_modes"] == {
        f"metrics.last.{LOSS}": "min", "metrics.best.own/mae_like": "min", "metrics.last.reward": "max",
    }  # fmt: skip
    assert (found["fields"], found["field_modes"]) == (row["fields"], row["field_modes"])
    assert (unknown.status_code, unknown.json()["error"]) == (422, "unknown_field")


def test_without_fields_a_row_has_none(client: TestClient, runs: dict[str, str]) -> None:
    assert set(map(str, listed(client).values())) == {"{}"}


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (f"metrics.last.{LOSS}", ["default", "given", "low"]),
        (f"metrics.best.{LOSS}", ["default", "given", "low"]),
        (f"metrics.at.100.{LOSS}", ["given", "low"]),
    ],
)
def test_the_list_is_sorted_by_a_metric_and_jobs_without_one_come_last(
    client: TestClient, runs: dict[str, str], sort: str, expected: list[str]
) -> None:
    rising, falling = names(client, sort=sort, order="asc"), names(client, sort=sort, order="desc")

    assert rising[: len(expected)] == expected
    assert falling[: len(expected)] == list(reversed(expected))
    assert sorted(rising) == sorted(falling) == sorted(runs)


@pytest.mark.parametrize("field", [RATE, "parameters.total_steps", "parameters.lora_rank"])
def test_the_list_is_sorted_by_a_parameter_as_it_is_shown(
    client: TestClient, runs: dict[str, str], field: str
) -> None:
    shown = {name: fields[field] for name, fields in listed(client, fields=field).items()}

    rising, falling = names(client, sort=field, order="asc"), names(client, sort=field, order="desc")

    values = [shown[name] for name in rising if shown[name] is not None]
    assert values == sorted(values)
    assert [shown[name] for name in falling if shown[name] is not None] == sorted(values, reverse=True)
    assert shown[rising[-1]] is shown[falling[-1]] is None
    assert sorted(rising) == sorted(falling) == sorted(runs)


def test_parameters_that_are_words_sort_as_words(client: TestClient, make_job: Callable[..., str]) -> None:
    for name, choice in (("a", "sigmoid"), ("b", "hinge"), ("c", "ipo")):
        make_job(name=name, recipe="dpo", params={"loss_type": choice})
    make_job(name="sft", recipe="sft")

    found = names(client, sort=LOSS_TYPE, order="asc")

    assert found[:3] == sorted("abc", key={"a": "sigmoid", "b": "hinge", "c": "ipo"}.__getitem__)
    assert found[3] == "sft"


def test_words_are_sorted_in_both_directions_whatever_their_capitals(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    for value in ("Zeta", "alpha", "Beta", "beta"):
        make_job(name=value, recipe="sft", params={"lora_targets": value})
    make_job(name="null", recipe="sft", params={"lora_targets": None})
    make_job(name="export", kind="export")

    rising = names(client, sort="parameters.lora_targets", order="asc")
    falling = names(client, sort="parameters.lora_targets", order="desc")

    assert [name.lower() for name in rising[:4]] == ["alpha", "beta", "beta", "zeta"]
    assert falling[:4] == rising[3::-1]
    assert {*rising[4:]} == {*falling[4:]} == {"null", "export"}


def test_fields_take_no_query_for_each_job(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    statements: list[str] = []

    def note(*seen: Any) -> None:
        statements.append(seen[2])

    def count(limit: int) -> int:
        statements.clear()
        fields = [RATE, f"metrics.last.{LOSS}", f"metrics.best.{LOSS}", f"metrics.at.1.{LOSS}"]
        assert len(listed(client, limit=limit, fields=fields)) == limit
        return len(statements)

    for number in range(5):
        write_curve(database, make_job(name=f"job {number}"), LOSS, {1: 1.0})

    event.listen(Engine, "before_cursor_execute", note)
    try:
        of_one, of_five = count(1), count(5)
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert of_five == of_one > 0


def test_a_parameter_that_no_recipe_has_is_refused_with_the_nearest(client: TestClient) -> None:
    for params in ({"fields": "parameters.learning_rat"}, {"sort": "parameters.learning_rat"}):
        response = client.get("/api/v1/jobs", params=params)

        assert (response.status_code, response.json()["error"]) == (422, "unknown_field")
        assert "'learning_rate'" in response.json()["message"]


@pytest.mark.parametrize(
    "field",
    ["learning_rate", "parameters.", "parameters.a'b", "metrics.first.x", "metrics.at.x", "metrics.at.-1.x"],
)
def test_what_is_no_field_is_malformed(client: TestClient, field: str) -> None:
    assert client.get("/api/v1/jobs", params={"fields": field}).status_code == 422
    assert client.get("/api/v1/jobs", params={"sort": field}).status_code == 422


def test_a_request_has_a_bounded_number_of_fields(client: TestClient) -> None:
    fields = [f"metrics.last.{number}" for number in range(17)]

    assert client.get("/api/v1/jobs", params={"fields": fields[:16]}).status_code == 200
    assert client.get("/api/v1/jobs", params={"fields": fields}).status_code == 422


def test_a_cursor_belongs_to_one_field(client: TestClient, runs: dict[str, str]) -> None:
    cursor = client.get("/api/v1/jobs", params={"sort": RATE, "limit": 1}).json()["next_cursor"]

    assert client.get("/api/v1/jobs", params={"sort": RATE, "cursor": cursor}).status_code == 200
    for sort in ("parameters.lora_rank", f"metrics.last.{LOSS}", "name"):
        assert client.get("/api/v1/jobs", params={"sort": sort, "cursor": cursor}).status_code == 422


def test_what_recent_trainings_have_is_offered(client: TestClient, runs: dict[str, str]) -> None:
    offered = client.get("/api/v1/jobs/fields").json()

    assert offered["metrics"] == [LOSS]
    assert {"learning_rate", "total_steps"} <= {each["name"] for each in offered["parameters"]}
    assert "loss_type" not in {each["name"] for each in offered["parameters"]}
    assert all(each["title"]["en"] and each["title"]["zh"] for each in offered["parameters"])
