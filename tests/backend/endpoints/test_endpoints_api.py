"""Endpoints: started once, in line with other jobs, stopped when idle, settled when they die."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.endpoints import service
from trellis_api.jobs import service as jobs
from trellis_api.jobs.checkpoints.service import apply_retention
from trellis_api.jobs.models import Checkpoint
from trellis_api.jobs.queue import admission
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.endpoint_life import Life
from trellis_testing.engine_server import EngineServer


def test_a_served_model_starts_and_is_listed(client: TestClient, model: Model) -> None:
    answer = client.post(f"/api/v1/models/{model.id}/endpoint", json={"idle_timeout_s": 30})

    assert answer.status_code == 202
    endpoint = answer.json()
    assert (endpoint["name"], endpoint["state"], endpoint["kind"]) == (model.name, "starting", "model")
    assert endpoint["idle_timeout_s"] == 30
    assert endpoint["can_stop"]
    assert [each["id"] for each in client.get("/api/v1/endpoints").json()["items"]] == [endpoint["id"]]
    run = client.get(f"/api/v1/jobs/{endpoint['run_id']}").json()
    assert (run["kind"], run["state"]) == ("serve", "queued")


def test_starting_twice_is_starting_once(client: TestClient, model: Model) -> None:
    first, second = (client.post(f"/api/v1/models/{model.id}/endpoint").json() for _ in range(2))

    assert (first["id"], first["attempt"]) == (second["id"], second["attempt"])


@pytest.fixture
def job_id(database: Database, settings: Settings, model: Model, make_job: Callable[..., str]) -> str:
    """A finished training with a checkpoint of step 3."""
    made = make_job(state=JobState.SUCCEEDED, model_id=model.id)
    folder: Path = settings.checkpoint_dir(made) / "global_step_3"
    folder.mkdir(parents=True)
    row = Checkpoint(job_id=made, step=3, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now())
    with database.write() as session:
        session.add(row)
    return made


def test_a_checkpoint_is_named_by_its_job_and_step(client: TestClient, job_id: str) -> None:
    endpoint = client.post(f"/api/v1/jobs/{job_id}/checkpoints/3/endpoint").json()

    assert (endpoint["name"], endpoint["kind"], endpoint["step"]) == (f"{job_id}:3", "checkpoint", 3)
    missing = client.post(f"/api/v1/jobs/{job_id}/checkpoints/4/endpoint")
    assert (missing.status_code, missing.json()["error"]) == (404, "checkpoint_not_found")


def test_a_checkpoint_stays_as_long_as_it_is_served(client: TestClient, job_id: str) -> None:
    path = f"/api/v1/jobs/{job_id}/checkpoints"
    endpoint = client.post(f"{path}/3/endpoint").json()

    (served,) = client.get(path).json()["items"]
    refused = client.delete(f"{path}/3")

    assert (served["kept_because"], served["can_delete"]) == (["serving"], False)
    assert (refused.status_code, refused.json()["details"]) == (409, {"reason": "serving"})
    client.delete(f"/api/v1/endpoints/{endpoint['id']}").raise_for_status()
    assert client.get(path).json()["items"][0]["kept_because"] == []
    assert client.delete(f"{path}/3").status_code == 204


def test_a_checkpoint_that_was_only_kept_for_its_endpoint_goes_when_that_is_stopped_in_the_queue(
    client: TestClient, database: Database, job_id: str
) -> None:
    path = f"/api/v1/jobs/{job_id}/checkpoints"
    endpoint = client.post(f"{path}/3/endpoint").json()
    with database.write() as session:
        job = jobs.get_locked_job(session, job_id=job_id)
        job.params = {**job.params, "keep_checkpoints": 1}
        session.add(
            Checkpoint(job_id=job_id, step=4, attempt=1, path="x", size_bytes=1, created_at=utc_now())
        )
        session.flush()
        assert apply_retention(session, job=job) == []

    client.delete(f"/api/v1/endpoints/{endpoint['id']}").raise_for_status()

    left = [each["step"] for each in client.get(path).json()["items"] if not each["is_pruned"]]
    assert left == [4]


def test_a_model_whose_chat_template_has_become_endless_is_not_started(
    client: TestClient, model: Model, settings: Settings
) -> None:
    folder = settings.data_root / str(model.path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chat_template.jinja").write_text("{{ ('x' * 9999999999) | length }}")

    refused = client.post(f"/api/v1/models/{model.id}/endpoint")
    asked = client.post("/v1/completions", json={"model": model.name, "prompt": "1"})

    assert (refused.status_code, refused.json()["error"]) == (422, "chat_template_runaway")
    assert (asked.status_code, asked.json()["error"]["code"]) == (400, "chat_template_runaway")
    assert client.get("/api/v1/endpoints").json()["items"] == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lineage": {"form": "adapter"}}, "model_is_adapter"),
        ({"architecture": "LlamaForSequenceClassification"}, "target_unusable"),
        ({"path": None, "state": "fetching"}, "model_not_ready"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_starts(
    client: TestClient, database: Database, model: Model, changes: dict[str, Any], code: str
) -> None:
    with database.write() as session:
        row = session.merge(model)
        for name, value in changes.items():
            setattr(row, name, value)
        session.add(row)

    answer = client.post(f"/api/v1/models/{model.id}/endpoint")

    assert answer.status_code in {409, 422}
    assert answer.json()["error"] == code
    assert client.get("/api/v1/endpoints").json()["items"] == []


def test_a_window_beyond_the_models_is_refused(client: TestClient, database: Database, model: Model) -> None:
    with database.write() as session:
        row = session.merge(model)
        row.context_length = 512
        session.add(row)

    answer = client.post(f"/api/v1/models/{model.id}/endpoint", json={"max_model_len": 1024})

    assert (answer.status_code, answer.json()["error"]) == (409, "endpoint_window_too_long")


def test_another_window_than_that_of_a_running_engine_is_refused(
    client: TestClient, model: Model, life: Life, engine: EngineServer
) -> None:
    path = f"/api/v1/models/{model.id}/endpoint"
    started = client.post(path).json()
    while_starting = client.post(path, json={"max_model_len": 128})
    life.report_ready(client, started, life.launch(started), engine.port)  # with 512

    answers = [client.post(path, json={"max_model_len": length}) for length in (128, 512, None)]

    codes = [(answer.status_code, answer.json().get("error")) for answer in (while_starting, *answers)]
    fixed = (409, "endpoint_window_fixed")
    assert codes == [fixed, fixed, (202, None), (202, None)]
    assert "Stop it first" in answers[0].json()["message"]


def test_unknown_endpoints_and_models_are_404(client: TestClient) -> None:
    assert client.get("/api/v1/endpoints/ep_aaaaaaaaaaaa").status_code == 404
    assert client.post("/api/v1/models/mdl_aaaaaaaaaaaa/endpoint").status_code == 404


def test_on_a_cpu_only_so_many_run_at_once(
    client: TestClient, database: Database, model: Model, settings: Settings
) -> None:
    client.post(f"/api/v1/models/{model.id}/endpoint")

    def claim(most: int) -> object:
        with database.write() as session:
            return admission.claim_next(session, total_slots=4, max_exports=1, max_endpoints=most)

    assert claim(0) is None
    assert claim(1) is not None


def test_the_engines_address_makes_it_ready(ready: dict[str, Any]) -> None:
    assert ready["max_model_len"] == 512
    assert ready["stops_at"] is not None
    assert "key" not in str(ready)


def test_only_the_run_of_an_endpoint_makes_one_ready(
    client: TestClient, life: Life, model: Model, engine: EngineServer, make_launched: Callable[..., Any]
) -> None:
    training = make_launched(model_id=model.id)

    life.report_ready(client, {"run_id": training.job_id, "attempt": 1}, training.token, engine.port)

    assert client.get("/api/v1/endpoints").json()["items"] == []


def test_a_stop_is_asked_for_once(client: TestClient, ready: dict[str, Any], life: Life) -> None:
    states = [client.delete(f"/api/v1/endpoints/{ready['id']}").json()["state"] for _ in range(2)]

    assert states == ["stopping", "stopping"]
    again = client.post(f"/api/v1/models/{ready['model']['id']}/endpoint")
    assert (again.status_code, again.json()["error"]) == (409, "endpoint_stopping")
    life.end(ready, JobState.STOPPED)
    stopped = client.delete(f"/api/v1/endpoints/{ready['id']}").json()
    assert (stopped["state"], stopped["stopped_by"], stopped["can_start"]) == ("stopped", "request", True)


def test_the_list_is_narrowed_to_what_is_up(client: TestClient, ready: dict[str, Any], life: Life) -> None:
    def listed(**query: Any) -> list[str]:
        return [each["id"] for each in client.get("/api/v1/endpoints", params=query).json()["items"]]

    assert (listed(is_up=True), listed(is_up=False)) == ([ready["id"]], [])
    client.delete(f"/api/v1/endpoints/{ready['id']}")
    assert listed(is_up=True) == [ready["id"]]
    life.end(ready, JobState.STOPPED)
    assert (listed(is_up=True), listed(is_up=False), listed()) == ([], [ready["id"]], [ready["id"]])


def test_a_stopped_one_starts_again_under_its_id(
    client: TestClient, ready: dict[str, Any], life: Life
) -> None:
    client.delete(f"/api/v1/endpoints/{ready['id']}")
    life.end(ready, JobState.STOPPED)

    again = client.post(f"/api/v1/models/{ready['model']['id']}/endpoint").json()

    assert (again["id"], again["attempt"], again["state"]) == (ready["id"], 2, "starting")


def test_a_dead_engine_is_told_with_its_cause(client: TestClient, ready: dict[str, Any], life: Life) -> None:
    life.end(ready, JobState.CRASHED, reason="The engine was killed by SIGKILL.", cause="engine_died")

    endpoint = client.get(f"/api/v1/endpoints/{ready['id']}").json()

    assert endpoint["state"] == "failed"
    assert endpoint["failure"]["reason"] == "The engine was killed by SIGKILL."
    assert endpoint["failure"]["hint"]["en"]


def test_an_idle_one_stops_and_one_in_use_does_not(
    ready: dict[str, Any], life: Life, database: Database, client: TestClient
) -> None:
    def stop_if_idle() -> str | None:
        with database.write() as session:
            return service.stop_if_idle(session, endpoint_id=ready["id"], default_s=600)

    life.age(ready, 599)
    assert stop_if_idle() is None
    life.age(ready, 601)
    assert stop_if_idle() == ready["run_id"]
    assert client.get(f"/api/v1/endpoints/{ready['id']}").json()["state"] == "stopping"
    life.end(ready, JobState.STOPPED)
    assert client.get(f"/api/v1/endpoints/{ready['id']}").json()["stopped_by"] == "idle"


def test_a_served_model_is_not_deleted(client: TestClient, ready: dict[str, Any]) -> None:
    answer = client.delete(f"/api/v1/models/{ready['model']['id']}")

    assert (answer.status_code, answer.json()["error"]) == (409, "model_in_use")


def test_figures_count_endpoints_by_state(client: TestClient, ready: dict[str, Any]) -> None:
    figures = client.get("/metrics").text

    assert 'trellis_endpoints{state="ready"} 1.0' in figures
    assert 'trellis_endpoints{state="failed"} 0.0' in figures


def test_a_scrape_reads_the_endpoints_once(client: TestClient, ready: dict[str, Any]) -> None:
    statements: list[str] = []

    def note(*seen: Any) -> None:
        statements.append(seen[2])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert 'trellis_endpoints{state="ready"} 1.0' in client.get("/metrics").text
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert sum("FROM endpoints" in each for each in statements) == 1


def tell_load(client: TestClient, life: Life, endpoint: dict[str, Any], token: str, **figures: Any) -> None:
    """The run says what its engine is at."""
    event = {
        "kind": "serving_load",
        "time": "2026-01-01T00:00:00Z",
        **{"running": 3, "waiting": 2, "kv_use": 0.5, "window_s": 60, "requests": 30},
        **{"prompt_tokens_per_s": 100.0, "generated_tokens_per_s": 40.5, "first_token_mean_s": 0.2},
        **figures,
    }
    answer = client.post(
        f"/api/v1/ingest/jobs/{endpoint['run_id']}/batches",
        json={"attempt": endpoint["attempt"], "sequence": 2, "events": [event]},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200, answer.text


def test_what_an_engine_is_at_is_shown_and_in_the_figures(
    client: TestClient, model: Model, life: Life
) -> None:
    endpoint = client.post(f"/api/v1/models/{model.id}/endpoint", json={}).json()
    token = life.launch(endpoint)
    life.report_ready(client, endpoint, token, 5000)
    assert client.get(f"/api/v1/endpoints/{endpoint['id']}").json()["load"] is None

    tell_load(client, life, endpoint, token)

    load = client.get(f"/api/v1/endpoints/{endpoint['id']}").json()["load"]
    assert (load["running"], load["waiting"], load["generated_tokens_per_s"]) == (3, 2, 40.5)
    assert (load["first_token_mean_s"], load["first_token_p95_s"]) == (0.2, None)
    figures = client.get("/metrics").text
    label = f'endpoint="{endpoint["id"]}"'
    assert f"trellis_endpoint_requests_waiting{{{label}}} 2.0" in figures
    assert f'trellis_endpoint_tokens_per_second{{direction="completion",{label}}} 40.5' in figures
    assert f'trellis_endpoint_first_token_seconds{{{label},statistic="mean"}} 0.2' in figures
    assert model.name not in figures

    life.end(endpoint, JobState.CRASHED, reason="It died.", cause="engine_died")
    assert client.get(f"/api/v1/endpoints/{endpoint['id']}").json()["load"] is None
    assert label not in client.get("/metrics").text
