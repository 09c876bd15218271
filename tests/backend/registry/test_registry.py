"""Named models: versions, aliases, the gate of a promotion, history, the way back, and names in /v1."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.endpoints.errors import ModelUnknown
from trellis_api.endpoints.openai.names import find_target
from trellis_api.evaluations.create import create as create_evaluations
from trellis_api.evaluations.recording import record_result
from trellis_api.evaluations.repository import find_evaluation
from trellis_api.evaluations.schemas import EvaluationCreate
from trellis_api.jobs import service as jobs
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.evaluations import leave_results

REGISTRY = "/api/v1/registry"
GOOD, BAD = (1.0,) * 40, (0.0,) * 40


@pytest.fixture
def add(client: TestClient, database: Database) -> Callable[..., str]:
    """Registers a new model as the next version of "bot"; the model's id."""

    def add(name: str = "bot", **fields: Any) -> str:
        with database.write() as session:
            model_id = new_id("mdl")
            model = Model(
                id=model_id,
                name=model_id,
                state="ready",
                source={"kind": "local"},
                lineage={},
                path=f"models/{model_id}",
                warnings=[],
            )
            session.add(model)
        answer = client.post(REGISTRY, json={"name": name, "model": model.id, **fields})
        assert answer.status_code == 201, answer.text
        return model.id

    return add


def promote(client: TestClient, version: int, alias: str = "production", **fields: Any) -> Any:
    return client.put(f"{REGISTRY}/bot/aliases/{alias}", json={"version": version, **fields})


def roll_back(client: TestClient, alias: str = "production") -> Any:
    return client.post(f"{REGISTRY}/bot/aliases/{alias}/rollback", json={"note": "back"})


def read(client: TestClient) -> dict[str, Any]:
    return dict(client.get(f"{REGISTRY}/bot").json())


def test_versions_are_numbered_and_aliases_stand_on_them(client: TestClient, add: Any) -> None:
    first, second = add(note="the first"), add()

    assert promote(client, 1).status_code == 200
    found = promote(client, 2, "candidate", note="try it").json()

    assert found["aliases"] == {"candidate": 2, "production": 1}
    assert [(each["number"], each["model"], each["aliases"]) for each in found["versions"]] == [
        (2, second, ["candidate"]),
        (1, first, ["production"]),
    ]
    assert found["versions"][1]["note"] == "the first"
    assert [each["name"] for each in client.get(REGISTRY).json()["items"]] == ["bot"]


def test_the_history_tells_who_stood_where(client: TestClient, add: Any) -> None:
    add(), add()
    promote(client, 1, note="first")
    promote(client, 2)
    roll_back(client)

    steps = client.get(f"{REGISTRY}/bot/history").json()["items"]

    assert [(each["kind"], each["from_version"], each["to_version"], each["note"]) for each in steps] == [
        ("rollback", 2, 1, "back"),
        ("promote", 1, 2, ""),
        ("promote", None, 1, "first"),
    ]


def test_rolling_back_twice_goes_two_promotions_back(client: TestClient, add: Any) -> None:
    for number in (1, 2, 3):
        add()
        promote(client, number)

    assert [roll_back(client).json()["aliases"]["production"] for _ in range(2)] == [2, 1]
    answer = roll_back(client)
    assert (answer.status_code, answer.json()["error"]) == (409, "nothing_to_roll_back")


def test_a_deleted_version_is_stepped_over_on_the_way_back(client: TestClient, add: Any) -> None:
    add()
    second, _ = add(), add()
    for number in (1, 2, 3):
        promote(client, number)
    assert client.delete(f"/api/v1/models/{second}").status_code == 204

    assert roll_back(client).json()["aliases"]["production"] == 1
    assert [each["exists"] for each in read(client)["versions"]] == [True, False, True]


def test_a_model_that_an_alias_stands_on_is_not_deleted(client: TestClient, add: Any) -> None:
    model = add()
    promote(client, 1)

    answer = client.delete(f"/api/v1/models/{model}")

    assert (answer.status_code, answer.json()["details"]) == (409, {"aliases": ["bot:production"]})
    assert client.delete(f"{REGISTRY}/bot").status_code == 204
    assert client.delete(f"/api/v1/models/{model}").status_code == 204


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("get", "/nobody", None, 404, "named_model_not_found"),
        ("put", "/bot/aliases/production", {"version": 9}, 404, "named_model_not_found"),
        ("put", "/bot/aliases/7", {"version": 1}, 422, "invalid_request"),
        ("post", "/bot/aliases/nobody/rollback", None, 404, "named_model_not_found"),
        ("post", "", {"name": "a:b", "model": "mdl_aaaaaaaaaaaa"}, 422, "invalid_request"),
        ("post", "", {"name": "a", "model": "mdl_aaaaaaaaaaaa"}, 404, "model_not_found"),
    ],
)
def test_what_is_not_there_is_said(
    client: TestClient, add: Any, method: str, path: str, body: Any, status: int, code: str
) -> None:
    add()

    answer = client.request(method, f"{REGISTRY}{path}", json=body)

    assert (answer.status_code, answer.json()["error"]) == (status, code)


# -- the gate ----------------------------------------------------------------------------------


@pytest.fixture
def measure(database: Database, settings: Settings, client: TestClient) -> Callable[..., str]:
    """Measures a model, whose evaluation ends with these scores."""

    def measure(model_id: str, scores: tuple[float, ...]) -> str:
        request = EvaluationCreate.model_validate(
            {"targets": [{"kind": "model", "model": model_id}], "benchmarks": [{"benchmark": "gsm8k"}]}
        )
        with database.write() as session:
            (row,) = create_evaluations(session, settings, request=request)
            claim = jobs.claim_for_launch(session, job_id=row.job_id)
            assert claim is not None
            found = find_evaluation(session, evaluation_id=row.id)
            assert found is not None
            record_result(session, job=claim.job, result=leave_results(settings, found, scores=scores))
            jobs.settle(session, job_id=row.job_id, attempt=1, state=JobState.SUCCEEDED)
            return str(row.id)

    return measure


GATE = {"gate": {"benchmark": "gsm8k"}}


def test_a_version_that_is_worse_is_not_promoted(client: TestClient, add: Any, measure: Any) -> None:
    old, new = add(), add()
    promote(client, 1)
    measure(old, GOOD)
    measure(new, BAD)

    answer = promote(client, 2, **GATE)

    assert (answer.status_code, answer.json()["error"]) == (409, "gate_closed")
    assert "40 problems worse" in answer.json()["message"]
    assert read(client)["aliases"] == {"production": 1}


def test_a_version_that_is_no_worse_is_promoted_with_the_figures(
    client: TestClient, add: Any, measure: Any
) -> None:
    old, new = add(), add()
    promote(client, 1)
    against, evaluation = measure(old, GOOD), measure(new, (0.0, *GOOD[1:]))

    answer = promote(client, 2, **GATE)

    assert answer.status_code == 200, answer.text
    (step, *_) = client.get(f"{REGISTRY}/bot/history").json()["items"]
    assert (step["gate"]["evaluation"], step["gate"]["against_evaluation"]) == (evaluation, against)
    assert (step["gate"]["value"], step["gate"]["pairs"]) == (39 / 40, 40)


def test_a_gate_without_scores_stays_closed(client: TestClient, add: Any, measure: Any) -> None:
    old, _ = add(), add()
    assert promote(client, 1, **GATE).status_code == 200  # nothing stands there yet
    measure(old, GOOD)

    answer = promote(client, 2, **GATE)

    assert (answer.status_code, answer.json()["details"]) == (409, {"version": 2, "benchmark": "gsm8k"})


def test_a_gate_with_a_label_that_nothing_has_is_closed_from_the_first_promotion_on(
    client: TestClient, add: Any, measure: Any
) -> None:
    measure(add(), GOOD)

    answer = promote(client, 1, gate={"benchmark": "gsmk8"})

    assert (answer.status_code, answer.json()["error"]) == (409, "gate_closed")
    assert answer.json()["details"] == {"benchmark": "gsmk8"}
    assert read(client)["aliases"] == {}


def test_an_alias_that_moved_while_the_gate_was_looked_at_stays(
    client: TestClient, add: Any, measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = add(), add()
    add()
    promote(client, 1)
    measure(old, GOOD)
    measure(new, GOOD)
    from trellis_api.registry import gate

    judge = gate.judge

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(gate, "judge", judge)
        assert promote(client, 3).status_code == 200
        return judge(*arguments)

    monkeypatch.setattr(gate, "judge", meanwhile)

    answer = promote(client, 2, **GATE)

    assert (answer.status_code, answer.json()["error"]) == (409, "alias_moved")
    assert read(client)["aliases"] == {"production": 3}


# -- /v1 ---------------------------------------------------------------------------------------


def test_requests_may_name_an_alias_or_a_version(client: TestClient, add: Any, database: Database) -> None:
    first, second = add(), add()
    promote(client, 2)

    with database.read() as session:
        found = {name: find_target(session, name) for name in ("bot:production", "bot:1", "bot:2")}

    assert {name: getattr(target, "model", None) for name, target in found.items()} == {
        "bot:production": second,
        "bot:1": first,
        "bot:2": second,
    }
    assert "bot:production" in [each["id"] for each in client.get("/v1/models").json()["data"]]
    assert client.get("/v1/models/bot:production").json()["id"] == "bot:production"


@pytest.mark.parametrize(
    "name", ["bot", "bot:", "bot:9", "bot:nobody", ":production", "bot:" + "9" * 40, "a:b:c"]
)
def test_other_names_lead_nowhere(add: Any, database: Database, name: str) -> None:
    add()

    with database.read() as session, pytest.raises(ModelUnknown):
        find_target(session, name)
