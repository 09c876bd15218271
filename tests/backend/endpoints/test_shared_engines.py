"""Adapters of one base share its engine: who shares, what the engine is told, who gets one alone."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository, service, sharing
from trellis_api.endpoints.own_engine import add_own_job
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Checkpoint
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.endpoint_life import Life
from trellis_testing.engine_server import EngineServer
from trellis_testing.waiting import wait_until

MakeCheckpoint = Callable[..., str]


@pytest.fixture(autouse=True)
def sharing_on(settings: Settings) -> None:
    """Off by default."""
    settings.endpoint_max_adapters = 4


@pytest.fixture
def make_checkpoint(
    database: Database, settings: Settings, model: Model, make_job: Callable[..., str]
) -> MakeCheckpoint:
    """Write checkpoints of a LoRA training of the model; the training's id."""

    def make(*steps: int, rank: int = 8, job_id: str | None = None, **config: Any) -> str:
        job_id = job_id or make_job(state=JobState.SUCCEEDED, model_id=model.id, params={"lora_rank": rank})
        for step in steps:
            folder: Path = settings.checkpoint_dir(job_id) / f"global_step_{step}"
            (folder / "lora_adapter").mkdir(parents=True)
            (folder / "lora_adapter" / "adapter_config.json").write_text(
                json.dumps({"r": rank, "peft_type": "LORA", "bias": "none", **config})
            )
            row = Checkpoint(
                job_id=job_id, step=step, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now()
            )
            with database.write() as session:
                session.add(row)
        return job_id

    return make


def serve(client: TestClient, job_id: str, step: int, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/jobs/{job_id}/checkpoints/{step}/endpoint", json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def list_endpoints(client: TestClient) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in client.get("/api/v1/endpoints").json()["items"]}


def bring_up(
    client: TestClient, model: Model, life: Life, engine: EngineServer
) -> tuple[dict[str, Any], str]:
    """The endpoint of the base model, whose engine answers, and the token of its run."""
    host = list_endpoints(client)[model.name]
    token = life.launch(host)
    life.report_ready(client, host, token, engine.port)
    return host, token


def beat(client: TestClient, endpoint: dict[str, Any], token: str) -> list[dict[str, Any]]:
    """The adapters that the engine is told to serve."""
    answer = client.post(
        f"/api/v1/ingest/jobs/{endpoint['run_id']}/heartbeat",
        json={"attempt": endpoint["attempt"], "step": 0},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["adapters"]
    return found


def report(
    client: TestClient,
    endpoint: dict[str, Any],
    token: str,
    sequence: int,
    reason: str | None = None,
    load_id: str | None = None,
) -> None:
    """The run says that the adapter is loaded, or why it is not: as it is asked to now, or was before."""
    told = {each["endpoint_id"]: each["load_id"] for each in beat(client, endpoint, token)}
    event = {
        "kind": "adapter",
        "time": utc_now().isoformat(),
        "endpoint_id": endpoint["id"],
        "load_id": load_id or told[endpoint["id"]],
        "reason": reason,
    }
    answer = client.post(
        f"/api/v1/ingest/jobs/{endpoint['run_id']}/batches",
        json={"attempt": endpoint["attempt"], "sequence": sequence, "events": [event]},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200, answer.text


def test_two_adapters_of_a_base_are_served_by_one_engine(
    client: TestClient,
    model: Model,
    life: Life,
    engine: EngineServer,
    make_checkpoint: MakeCheckpoint,
) -> None:
    first, second = make_checkpoint(3), make_checkpoint(7)
    one, two = serve(client, first, 3), serve(client, second, 7)

    assert one["run_id"] == two["run_id"]
    assert one["shares_engine_of"] == {"id": model.id, "name": model.name}
    host = list_endpoints(client)[model.name]
    assert (host["run_id"], host["shares_engine_of"]) == (one["run_id"], None)
    token = life.launch(host)
    told = beat(client, host, token)
    assert [each["served_name"] for each in told] == [f"{first}:3", f"{second}:7"]
    assert told[0]["checkpoint"]["path"].endswith("global_step_3")
    assert "replaces" not in told[0], "runs of an earlier version take no fields that they don't know"
    life.report_ready(client, host, token, engine.port)
    assert list_endpoints(client)[one["name"]]["state"] == "starting"
    report(client, one, token, 2)
    ready = list_endpoints(client)
    assert [ready[each]["state"] for each in (model.name, one["name"], two["name"])] == [
        "ready",
        "ready",
        "starting",
    ]
    assert (ready[one["name"]]["max_model_len"], ready[one["name"]]["slots"]) == (512, 0)

    for name in (one["name"], model.name):
        body = {"model": name, "messages": [{"role": "user", "content": "1+1="}]}
        assert client.post("/v1/chat/completions", json=body).status_code == 200

    assert [body["model"] for body in engine.bodies] == [one["name"], model.name]


def test_a_request_keeps_the_engine_that_it_shares_from_idling(
    client: TestClient,
    model: Model,
    life: Life,
    engine: EngineServer,
    database: Database,
    make_checkpoint: MakeCheckpoint,
) -> None:
    job_id = make_checkpoint(3)
    one = serve(client, job_id, 3)
    host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2)

    client.post(
        "/v1/chat/completions", json={"model": one["name"], "messages": [{"role": "user", "content": "?"}]}
    )

    assert list_endpoints(client)[model.name]["last_used_at"] is not None
    with database.read() as session:
        assert [row.id for row, _ in repository.list_running(session)] == [one["id"], host["id"]]


def test_stopping_an_adapter_leaves_the_engine_running(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3)
    one = serve(client, job_id, 3)
    host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2)

    stopped = client.delete(f"/api/v1/endpoints/{one['id']}").json()

    assert (stopped["state"], stopped["can_stop"], stopped["can_start"]) == ("stopped", False, True)
    assert list_endpoints(client)[model.name]["state"] == "ready"
    up = client.get("/api/v1/endpoints", params={"is_up": True}).json()["items"]
    assert [each["name"] for each in up] == [model.name]
    assert beat(client, host, token) == []
    again = serve(client, job_id, 3)
    assert (again["id"], again["state"], again["run_id"]) == (one["id"], "starting", host["run_id"])


def test_a_checkpoint_that_was_only_kept_for_its_adapter_goes_when_that_is_unloaded(
    client: TestClient,
    database: Database,
    model: Model,
    make_checkpoint: MakeCheckpoint,
    life: Life,
    engine: EngineServer,
) -> None:
    job_id = make_checkpoint(100, 200)
    with database.write() as session:
        job = jobs.get_locked_job(session, job_id=job_id)
        job.params = {**job.params, "keep_checkpoints": 1}
    adapter = serve(client, job_id, 100)
    bring_up(client, model, life, engine)

    client.delete(f"/api/v1/endpoints/{adapter['id']}").raise_for_status()

    rows = client.get(f"/api/v1/jobs/{job_id}/checkpoints").json()["items"]
    assert [each["step"] for each in rows if not each["is_pruned"]] == [200]


def test_an_answer_to_an_earlier_request_does_not_settle_a_later_one(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3)
    one = serve(client, job_id, 3)
    host, token = bring_up(client, model, life, engine)
    (first,) = beat(client, host, token)
    client.delete(f"/api/v1/endpoints/{one['id']}")
    serve(client, job_id, 3)
    (second,) = beat(client, host, token)
    assert first["load_id"] != second["load_id"]

    report(client, one, token, 2, load_id=first["load_id"])
    assert list_endpoints(client)[one["name"]]["state"] == "starting"
    report(client, one, token, 3, reason="out of memory", load_id=first["load_id"])
    assert list_endpoints(client)[one["name"]]["shares_engine_of"]["id"] == model.id
    report(client, one, token, 4, load_id=second["load_id"])

    assert list_endpoints(client)[one["name"]]["state"] == "ready"


def test_what_an_engine_cached_for_an_adapter_is_not_used_for_its_next_weights(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3)
    one = serve(client, job_id, 3)
    _host, token = bring_up(client, model, life, engine)
    body = {"model": one["name"], "messages": [{"role": "user", "content": "1+1="}]}

    report(client, one, token, 2)
    client.post("/v1/chat/completions", json=body)
    client.delete(f"/api/v1/endpoints/{one['id']}")
    serve(client, job_id, 3)
    report(client, one, token, 3)
    client.post("/v1/chat/completions", json=body)
    client.post("/v1/chat/completions", json={**body, "model": model.name})

    first, second, base = (asked.get("cache_salt") for asked in engine.bodies)
    assert first
    assert second
    assert first != second
    assert base is None


def test_an_adapter_that_is_alone_again_knows_nothing_of_the_engine_before(
    client: TestClient,
    database: Database,
    model: Model,
    life: Life,
    engine: EngineServer,
    make_checkpoint: MakeCheckpoint,
) -> None:
    one = serve(client, make_checkpoint(3), 3)
    _host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2)
    client.delete(f"/api/v1/endpoints/{one['id']}")
    with database.write() as session:
        row = repository.find_endpoint(session, endpoint_id=one["id"])
        assert row is not None
        add_own_job(session, row=row, model_id=model.id, slots=0)
        session.add(row)

    with database.read() as session:
        row = repository.find_endpoint(session, endpoint_id=one["id"])
        assert row is not None
        assert (row.ready_attempt, row.ready_at, row.host, row.port) == (None, None, None, None)
        assert (row.engine_id, row.asked_attempt, row.load_id) == (None, None, None)


def test_an_adapter_leaves_the_settings_of_its_base_alone(
    client: TestClient, model: Model, life: Life, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3)
    settings = {"idle_timeout_s": 1234, "max_model_len": 128}
    host = client.post(f"/api/v1/models/{model.id}/endpoint", json=settings).json()
    life.launch(host)
    life.end(host, JobState.STOPPED)

    shared = serve(client, job_id, 3, idle_timeout_s=30)

    assert shared["shares_engine_of"]["id"] == model.id
    again = list_endpoints(client)[model.name]
    assert (again["attempt"], again["idle_timeout_s"], again["max_model_len"]) == (2, 1234, 128)
    assert shared["idle_timeout_s"] == 30


def test_a_model_that_vllm_adds_no_adapters_to_is_served_without(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3, 4)
    one = serve(client, job_id, 3)
    host = list_endpoints(client)[model.name]
    token = life.launch(host)
    life.report_ready(client, host, token, engine.port, max_lora_rank=None)
    report(client, one, token, 2, reason="GPT2 does not support LoRA yet.")

    own = list_endpoints(client)[one["name"]]
    assert list_endpoints(client)[model.name]["state"] == "ready"
    assert (own["shares_engine_of"], own["state"]) == (None, "starting")
    assert serve(client, job_id, 4)["shares_engine_of"] is None, "it is known by now"
    life.launch(own)
    life.end(own, JobState.STOPPED)
    assert serve(client, job_id, 3)["shares_engine_of"] is None, "it is not tried again soon"


def test_an_adapter_is_unloaded_after_its_own_time_and_its_engine_stays_until_then(
    client: TestClient,
    database: Database,
    model: Model,
    life: Life,
    engine: EngineServer,
    make_checkpoint: MakeCheckpoint,
) -> None:
    def sweep() -> None:
        for name in (one["name"], model.name):
            with database.write() as session:
                service.stop_if_idle(session, endpoint_id=list_endpoints(client)[name]["id"], default_s=60)

    one = serve(client, make_checkpoint(3), 3, idle_timeout_s=120)
    host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2)
    assert list_endpoints(client)[one["name"]]["stops_at"] is not None
    assert list_endpoints(client)[model.name]["stops_at"] is None

    life.age(one, 90)
    life.age(host, 90)
    sweep()
    states = list_endpoints(client)
    assert (states[one["name"]]["state"], states[model.name]["state"]) == ("ready", "ready")
    life.age(one, 121)
    life.age(host, 121)
    sweep()

    states = list_endpoints(client)
    assert (states[one["name"]]["state"], states[one["name"]]["stopped_by"]) == ("stopped", "idle")
    assert states[model.name]["state"] == "stopping"


def test_an_adapter_waits_for_an_engine_that_is_stopping(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3)
    host = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    life.report_ready(client, host, life.launch(host), engine.port)
    client.delete(f"/api/v1/endpoints/{host['id']}")

    refused = client.post(f"/api/v1/jobs/{job_id}/checkpoints/3/endpoint")
    asked = client.post(
        "/v1/chat/completions",
        json={"model": f"{job_id}:3", "messages": [{"role": "user", "content": "1+1="}]},
    )

    assert (refused.status_code, refused.json()["error"]) == (409, "endpoint_stopping")
    assert (asked.status_code, asked.json()["error"]["code"]) == (503, "endpoint_starting")
    life.end(host, JobState.STOPPED)
    assert serve(client, job_id, 3)["shares_engine_of"]["id"] == model.id


def test_a_request_in_flight_is_answered_while_its_adapter_is_unloaded(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    one = serve(client, make_checkpoint(3), 3)
    _host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2)
    engine.may_go_on.clear()
    body = {"model": one["name"], "messages": [{"role": "user", "content": "1+1="}]}

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, "/v1/chat/completions", json=body)
        wait_until(lambda: engine.bodies, 10, "the engine is asked")
        client.delete(f"/api/v1/endpoints/{one['id']}")
        time.sleep(1.5)  # longer than between two looks at the engine
        engine.may_go_on.set()

    assert asked.result().status_code == 200


def test_an_engine_that_stops_takes_its_adapters_along_and_a_restart_brings_back_those_asked_for(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3, 4)
    serve(client, job_id, 3)
    four = serve(client, job_id, 4)
    host = list_endpoints(client)[model.name]
    life.report_ready(client, host, life.launch(host), engine.port)
    life.end(host, JobState.FAILED, reason="It died.", cause="engine_died")
    failed = list_endpoints(client)[four["name"]]
    assert (failed["state"], failed["failure"]["cause"]) == ("failed", "engine_died")

    again = serve(client, job_id, 4)

    assert (again["run_id"], again["attempt"], again["state"]) == (host["run_id"], 2, "starting")
    listed = list_endpoints(client)
    assert listed[f"{job_id}:3"]["state"] == "stopped"
    assert [each["served_name"] for each in beat(client, again, life.launch(again))] == [f"{job_id}:4"]


def test_an_adapter_that_the_engine_refuses_gets_an_engine_of_its_own(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    one = serve(client, make_checkpoint(3), 3)
    host, token = bring_up(client, model, life, engine)

    report(client, one, token, 2, reason="unsupported target modules")

    own = list_endpoints(client)[one["name"]]
    assert own["shares_engine_of"] is None
    assert (own["run_id"] != host["run_id"], own["state"]) == (True, "starting")
    assert list_endpoints(client)[model.name]["state"] == "ready"


def test_an_adapter_goes_on_where_its_checkpoint_is_removed(
    client: TestClient,
    settings: Settings,
    model: Model,
    life: Life,
    engine: EngineServer,
    make_checkpoint: MakeCheckpoint,
) -> None:
    job_id = make_checkpoint(3)
    one = serve(client, job_id, 3)
    _host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2)

    shutil.rmtree(settings.checkpoint_dir(job_id) / "global_step_3")

    (told,) = beat(client, one, token)
    assert (told["served_name"], told["checkpoint"]) == (f"{job_id}:3", None)
    assert list_endpoints(client)[one["name"]]["state"] == "ready"


def test_an_engine_that_ran_for_a_minute_is_restarted_for_an_adapter_that_was_just_loaded(
    client: TestClient, model: Model, life: Life, engine: EngineServer, make_checkpoint: MakeCheckpoint
) -> None:
    one = serve(client, make_checkpoint(3), 3)
    host, token = bring_up(client, model, life, engine)
    life.age(host, 61)
    report(client, one, token, 2)
    life.end(host, JobState.CRASHED, reason="It died.", cause="engine_died")

    body = {"model": one["name"], "messages": [{"role": "user", "content": "1+1="}]}
    error = client.post("/v1/chat/completions", json=body).json()["error"]

    assert error["code"] == "endpoint_starting"
    assert list_endpoints(client)[model.name]["attempt"] == 2


@pytest.fixture
def refused(
    client: TestClient,
    model: Model,
    life: Life,
    engine: EngineServer,
    make_checkpoint: MakeCheckpoint,
) -> dict[str, Any]:
    """An adapter that the engine of its base, which is up, has refused; its own engine has stopped."""
    one = serve(client, make_checkpoint(3), 3)
    _host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2, reason="unsupported target modules")
    own = list_endpoints(client)[one["name"]]
    life.launch(own)
    life.end(own, JobState.STOPPED)
    return list_endpoints(client)[one["name"]]


def start_again(client: TestClient, refused: dict[str, Any]) -> dict[str, Any]:
    return serve(client, refused["job"]["id"], refused["step"])


def refuse_at(database: Database, endpoint: dict[str, Any], when: datetime | None) -> None:
    with database.write() as session:
        row = repository.find_endpoint(session, endpoint_id=endpoint["id"])
        assert row is not None
        row.refused_at = when
        session.add(row)


def test_a_refusal_is_told_with_its_reason_and_its_end(client: TestClient, refused: dict[str, Any]) -> None:
    again = start_again(client, refused)

    told = again["sharing_refusal"]
    assert again["shares_engine_of"] is None
    assert told["reason"] == "unsupported target modules"
    left = datetime.fromisoformat(told["retry_at"]) - utc_now()
    assert timedelta(hours=23) < left <= sharing.REFUSED_FOR


@pytest.mark.parametrize("when", [utc_now() - sharing.REFUSED_FOR, None])
def test_a_refusal_is_forgotten_after_its_time_and_so_is_one_without_a_time(
    client: TestClient, database: Database, model: Model, refused: dict[str, Any], when: datetime | None
) -> None:
    refuse_at(database, refused, when)

    again = start_again(client, refused)

    assert again["shares_engine_of"] == {"id": model.id, "name": model.name}
    assert again["sharing_refusal"] is None


def test_another_run_of_the_engine_is_asked_again(
    client: TestClient, model: Model, life: Life, refused: dict[str, Any]
) -> None:
    host = list_endpoints(client)[model.name]
    life.end(host, JobState.FAILED, reason="It died.", cause="engine_died")
    client.post(f"/api/v1/models/{model.id}/endpoint")

    again = start_again(client, refused)

    assert (again["run_id"], again["attempt"]) == (host["run_id"], 2)
    assert again["sharing_refusal"] is None


def test_no_engine_is_started_to_ask_it_again(
    client: TestClient, model: Model, life: Life, refused: dict[str, Any]
) -> None:
    life.end(list_endpoints(client)[model.name], JobState.STOPPED)

    again = start_again(client, refused)

    assert again["shares_engine_of"] is None
    assert list_endpoints(client)[model.name]["state"] == "stopped"


def test_an_adapter_whose_files_were_replaced_is_tried_again(
    client: TestClient, settings: Settings, model: Model, refused: dict[str, Any]
) -> None:
    folder = settings.checkpoint_dir(refused["job"]["id"]) / f"global_step_{refused['step']}"
    (folder / "lora_adapter" / "adapter_model.safetensors").write_bytes(b"others")

    assert start_again(client, refused)["shares_engine_of"]["id"] == model.id


def test_an_adapter_is_tried_again_under_another_limit(
    client: TestClient, settings: Settings, model: Model, refused: dict[str, Any]
) -> None:
    settings.endpoint_max_adapters = 8

    assert start_again(client, refused)["shares_engine_of"]["id"] == model.id


@pytest.mark.parametrize(
    "config", [{"use_dora": True}, {"modules_to_save": ["lm_head"]}, {"bias": "all"}, {"r": 1000}]
)
def test_what_vllm_cannot_add_at_run_time_is_merged_for_an_engine_of_its_own(
    client: TestClient, make_checkpoint: MakeCheckpoint, config: dict[str, Any]
) -> None:
    one = serve(client, make_checkpoint(3, **config), 3)

    assert one["shares_engine_of"] is None
    assert list(list_endpoints(client)) == [one["name"]]


def test_an_engine_without_room_for_the_rank_is_not_shared(
    client: TestClient, model: Model, make_checkpoint: MakeCheckpoint
) -> None:
    small = make_checkpoint(3, rank=8)
    shared = serve(client, small, 3)
    large = serve(client, make_checkpoint(3, rank=64), 3)

    assert shared["shares_engine_of"]["id"] == model.id
    assert large["shares_engine_of"] is None


def test_a_base_that_was_started_before_any_adapter_was_trained_has_no_room(
    client: TestClient, model: Model, make_checkpoint: MakeCheckpoint
) -> None:
    client.post(f"/api/v1/models/{model.id}/endpoint")

    assert serve(client, make_checkpoint(3), 3)["shares_engine_of"] is None


def test_a_window_of_its_own_needs_an_engine_of_its_own(
    client: TestClient, model: Model, make_checkpoint: MakeCheckpoint
) -> None:
    job_id = make_checkpoint(3, 4)
    serve(client, job_id, 3)

    assert serve(client, job_id, 4, max_model_len=64)["shares_engine_of"] is None


def test_the_newest_checkpoint_is_served_without_its_step(
    client: TestClient,
    model: Model,
    life: Life,
    engine: EngineServer,
    make_checkpoint: MakeCheckpoint,
) -> None:
    job_id = make_checkpoint(3)
    one = serve(client, job_id, 3)
    host, token = bring_up(client, model, life, engine)
    report(client, one, token, 2)
    make_checkpoint(9, job_id=job_id)
    body = {"model": f"{job_id}:latest", "messages": [{"role": "user", "content": "1+1="}]}

    loading = client.post("/v1/chat/completions", json=body)
    report(client, list_endpoints(client)[f"{job_id}:9"], token, 3)
    answered = client.post("/v1/chat/completions", json=body)

    assert loading.json()["error"]["code"] == "endpoint_starting"
    assert (answered.status_code, engine.bodies[-1]["model"]) == (200, f"{job_id}:9")
    assert list_endpoints(client)[f"{job_id}:9"]["run_id"] == host["run_id"], "the engine was not restarted"
    unknown = client.post("/v1/chat/completions", json={**body, "model": "job_aaaaaaaaaaaa:latest"})
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (404, "model")


@pytest.fixture
def exported(database: Database, settings: Settings, model: Model) -> str:
    """An exported adapter of the model; its id."""
    folder = settings.data_root / "models" / "adapter"
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 8, "peft_type": "LORA", "bias": "none"}))
    with database.write() as session:
        session.add(
            Model(
                id="mdl_bbbbbbbbbbbb",
                name="my-adapter",
                state="ready",
                source={"kind": "local", "path": "models/adapter"},
                lineage={"form": "adapter", "model_id": model.id},
                path="models/adapter",
                warnings=[],
            )
        )
    return "mdl_bbbbbbbbbbbb"


def test_an_exported_adapter_is_served_on_its_base(
    client: TestClient, settings: Settings, model: Model, life: Life, exported: str
) -> None:
    endpoint = client.post(f"/api/v1/models/{exported}/endpoint").json()

    assert (endpoint["name"], endpoint["shares_engine_of"]["id"]) == ("my-adapter", model.id)
    assert endpoint["model"] == {"id": exported, "name": "my-adapter"}
    host = list_endpoints(client)[model.name]
    (told,) = beat(client, host, life.launch(host))
    assert told["checkpoint"]["path"] == str(settings.data_root / "models" / "adapter")
    assert "my-adapter" in [card["id"] for card in client.get("/v1/models").json()["data"]]


@pytest.mark.parametrize("is_shared", [True, False])
def test_an_adapter_is_not_deleted_while_an_engine_is_to_load_it(
    client: TestClient, settings: Settings, exported: str, is_shared: bool
) -> None:
    settings.endpoint_max_adapters = 4 if is_shared else 0
    endpoint = client.post(f"/api/v1/models/{exported}/endpoint").json()
    assert (endpoint["shares_engine_of"] is not None) == is_shared

    refused = client.delete(f"/api/v1/models/{exported}")
    client.delete(f"/api/v1/endpoints/{endpoint['id']}").raise_for_status()
    deleted = client.delete(f"/api/v1/models/{exported}")

    assert (refused.status_code, refused.json()["error"]) == (409, "model_in_use")
    assert refused.json()["details"] == {"jobs": ["my-adapter"]}
    assert deleted.status_code == 204


def test_with_sharing_off_each_adapter_has_its_own_engine(
    client: TestClient, settings: Settings, make_checkpoint: MakeCheckpoint
) -> None:
    settings.endpoint_max_adapters = 0

    assert serve(client, make_checkpoint(3), 3)["shares_engine_of"] is None
