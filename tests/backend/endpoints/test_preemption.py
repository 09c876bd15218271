"""Endpoints make room for trainings where the setting says so, idle ones first, and say for which."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import EndpointPreemption, Settings
from trellis_api.endpoints import repository
from trellis_api.jobs.models import Checkpoint
from trellis_api.jobs.queue import admission
from trellis_api.jobs.repository import find_job
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model
from trellis_contracts.states import JobState
from trellis_testing.endpoint_life import Life
from trellis_testing.engine_server import EngineServer
from trellis_testing.waiting import wait_until

SLOTS = 4
Serve = Callable[..., dict[str, Any]]
Claim = Callable[..., str | None]


@pytest.fixture(autouse=True)
def gpus(settings: Settings) -> None:
    """Endpoints take slots on GPUs."""
    settings.platform, settings.slots = "cuda", SLOTS


@pytest.fixture
def claim(database: Database) -> Claim:
    """Launch the job whose turn it is, and make room for it otherwise."""

    def claim(mode: EndpointPreemption = "idle") -> str | None:
        with database.write() as session:
            found = admission.claim_next(session, total_slots=SLOTS, max_exports=1, endpoint_preemption=mode)
            return found.job.id if found else None

    return claim


@pytest.fixture
def serve(client: TestClient, database: Database, model: Model, life: Life, engine: EngineServer) -> Serve:
    """A ready endpoint of a model of its own, last used so many seconds ago."""

    def serve(name: str, *, used_s: float = 0.0, **body: Any) -> dict[str, Any]:
        copy = Model(**{**model.model_dump(), "id": new_id("mdl"), "name": name})
        with database.write() as session:
            session.add(copy)
            model_id = copy.id
        endpoint: dict[str, Any] = client.post(f"/api/v1/models/{model_id}/endpoint", json=body).json()
        life.report_ready(client, endpoint, life.launch(endpoint), engine.port)
        life.age(endpoint, used_s)
        return endpoint

    return serve


def read(client: TestClient, endpoint: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/endpoints/{endpoint['id']}").json()
    return found


def states(client: TestClient, *endpoints: dict[str, Any]) -> list[str]:
    return [read(client, each)["state"] for each in endpoints]


def blocking(client: TestClient) -> dict[str, str]:
    """What the queue says of the endpoints that its first training waits for."""
    (first, *_) = client.get("/api/v1/jobs/queue").json()["items"]
    return {each["name"]: each["outlook"] for each in first["blocking_endpoints"]}


def test_an_idle_endpoint_makes_room_with_a_reason_and_starts_again_afterwards(
    client: TestClient,
    database: Database,
    serve: Serve,
    claim: Claim,
    life: Life,
    make_job: Callable[..., str],
) -> None:
    idle = serve("idle", used_s=61)
    training = make_job(name="big", gpus=4)

    assert blocking(client) == {"idle": "preemptible"}
    assert claim() is None
    stopping = read(client, idle)
    assert blocking(client) == {"idle": "stopping"}
    life.end(idle, JobState.STOPPED)
    stopped = read(client, idle)

    assert stopping["state"] == "stopping"
    for told in (stopping, stopped):
        assert told["preempted_by"] == {"id": training, "name": "big"}
    assert (stopped["state"], stopped["stopped_by"], stopped["failure"]) == ("stopped", "training", None)
    with database.read() as session:
        run = find_job(session, job_id=idle["run_id"])
    assert run is not None
    assert run.reason == f"Stopped to make room for job big ({training})."
    assert claim() == training
    asked = client.post("/v1/completions", json={"model": "idle", "prompt": "1"})
    assert (asked.status_code, asked.json()["error"]["code"]) == (503, "endpoint_starting")
    again = read(client, idle)
    assert (again["state"], again["attempt"], again["preempted_by"]) == ("starting", 2, None)
    assert claim() is None, "the slots are the training's"


def test_idle_ones_are_stopped_first_and_then_the_least_recently_used(
    client: TestClient, serve: Serve, claim: Claim, make_job: Callable[..., str]
) -> None:
    late, early, idle = serve("late", used_s=5), serve("early", used_s=20), serve("idle", used_s=90)
    make_job(gpus=3)  # one slot is free

    assert claim("any") is None

    assert states(client, idle, early, late) == ["stopping", "stopping", "ready"]


@pytest.mark.parametrize(("mode", "used_s", "is_stopped"), [
    ("off", 900, False), ("idle", 30, False), ("idle", 61, True), ("any", 0, True),
])  # fmt: skip
def test_the_setting_says_which_endpoints_are_stopped(
    client: TestClient,
    serve: Serve,
    claim: Claim,
    make_job: Callable[..., str],
    mode: EndpointPreemption,
    used_s: float,
    is_stopped: bool,
) -> None:
    endpoint = serve("one", used_s=used_s)
    make_job(gpus=4)

    assert claim(mode) is None

    assert states(client, endpoint) == ["stopping" if is_stopped else "ready"]


def test_one_that_is_marked_to_be_kept_is_never_stopped(
    client: TestClient, settings: Settings, serve: Serve, claim: Claim, make_job: Callable[..., str]
) -> None:
    kept = serve("kept", used_s=900, preemptible=False)
    make_job(gpus=4)

    claim("any")
    assert (states(client, kept), blocking(client)) == (["ready"], {"kept": "kept"})
    assert read(client, kept)["preemptible"] is False
    # A start without a word leaves the mark; one with it takes it away, also while the endpoint is up.
    path = f"/api/v1/models/{kept['model']['id']}/endpoint"
    assert client.post(path).json()["preemptible"] is False
    assert client.post(path, json={"preemptible": True}).json()["preemptible"] is True
    settings.endpoint_preemption = "off"
    assert blocking(client) == {"kept": "off"}
    claim("idle")
    assert states(client, kept) == ["stopping"]


def test_a_mark_is_changed_at_once_without_loading_or_stopping_anything(
    client: TestClient, serve: Serve, claim: Claim, make_job: Callable[..., str]
) -> None:
    endpoint = serve("one", used_s=900)
    path = f"/api/v1/endpoints/{endpoint['id']}"
    make_job(gpus=4)

    kept = client.patch(path, json={"preemptible": False}).json()
    claim("any")
    assert (kept["preemptible"], kept["state"], states(client, endpoint)) == (False, "ready", ["ready"])
    assert blocking(client) == {"one": "kept"}

    limited = client.patch(path, json={"idle_timeout_s": 77}).json()
    assert (limited["preemptible"], limited["idle_timeout_s"]) == (False, 77)

    client.patch(path, json={"preemptible": True}).raise_for_status()
    claim("any")
    assert states(client, endpoint) == ["stopping"]
    # ... and while it stops or has stopped.
    assert client.patch(path, json={"preemptible": False}).json()["state"] == "stopping"
    assert read(client, endpoint)["preemptible"] is False


@pytest.mark.parametrize("body", [{"preemptible": None}, {"max_model_len": 64}, {"idle_timeout_s": 1}])
def test_what_cannot_be_changed_is_refused(client: TestClient, serve: Serve, body: dict[str, Any]) -> None:
    path = f"/api/v1/endpoints/{serve('one', used_s=900)['id']}"

    assert client.patch(path, json=body).json()["error"] == "invalid_request"
    assert client.patch("/api/v1/endpoints/ep_aaaaaaaaaaaa", json={}).json()["error"] == "endpoint_not_found"


def test_nobody_is_stopped_in_vain_or_for_an_evaluation(
    client: TestClient, serve: Serve, claim: Claim, make_job: Callable[..., str]
) -> None:
    idle = serve("idle", used_s=900)
    running = make_job(gpus=2, state=JobState.RUNNING)
    large = make_job(gpus=3)

    claim("any")
    assert states(client, idle) == ["ready"], "two slots are the other training's"
    for job_id in (running, large):
        client.post(f"/api/v1/jobs/{job_id}/stop")
    assert claim("any") is None
    make_job(kind="evaluate", recipe="evaluate", gpus=4)
    claim("any")

    assert states(client, idle) == ["ready"], "an evaluation waits for its turn"


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_an_idle_endpoint_makes_room_for_one_that_is_asked(
    client: TestClient,
    database: Database,
    settings: Settings,
    serve: Serve,
    life: Life,
    make_job: Callable[..., str],
    platform: Literal["cpu", "cuda"],
) -> None:
    settings.platform, settings.slots, settings.max_endpoints = platform, 3, 3

    def claim(mode: EndpointPreemption = "idle") -> str | None:
        with database.write() as session:
            found = admission.claim_next(
                session, total_slots=3, max_exports=1, max_endpoints=3, endpoint_preemption=mode
            )
            return found.job.id if found else None

    kept, used = serve("kept", used_s=900, preemptible=False), serve("used", used_s=5)
    idle = serve("idle", used_s=61)
    with database.write() as session:
        source = find_model(session, model_id=idle["model"]["id"])
        assert source is not None
        for name in ("third", "fourth"):
            session.add(Model(**{**source.model_dump(), "id": new_id("mdl"), "name": name}))
    asked = client.post("/v1/completions", json={"model": "third", "prompt": "1"})
    client.post("/v1/completions", json={"model": "fourth", "prompt": "1"})
    third = next(each for each in client.get("/api/v1/endpoints").json()["items"] if each["name"] == "third")

    room = "a slot is free" if platform == "cuda" else "fewer than 3 endpoints are running"
    assert asked.status_code == 503
    assert room in asked.json()["error"]["message"]
    assert "60 s" in asked.json()["error"]["message"]
    assert claim("off") is None
    assert states(client, kept, used, idle) == ["ready", "ready", "ready"]
    assert (claim("any"), claim("any")) == (None, None), "one that stops is waited for"
    assert states(client, kept, used, idle) == ["ready", "ready", "stopping"]
    life.end(idle, JobState.STOPPED)
    stopped = read(client, idle)
    assert stopped["preempted_by"] == {"id": third["id"], "name": "third"}
    assert (stopped["stopped_by"], stopped["failure"]) == ("endpoint", None)
    assert (claim("any"), claim("any")) == (third["run_id"], None)
    assert states(client, kept, used) == ["ready", "ready"], "the fourth waits for one that is idle"
    with database.read() as session:
        run = find_job(session, job_id=idle["run_id"])
    assert run is not None
    assert run.reason == f"Stopped to make room for endpoint third ({third['id']})."


def test_one_in_use_is_not_stopped_for_a_training_of_lower_priority(
    client: TestClient, serve: Serve, claim: Claim, make_job: Callable[..., str]
) -> None:
    used, idle = serve("used"), serve("idle", used_s=90)
    make_job(gpus=4, priority=-1)

    claim("any")
    assert (states(client, used, idle), blocking(client)) == (
        ["ready", "ready"], {"used": "busy", "idle": "preemptible"},
    )  # fmt: skip
    make_job(gpus=4)
    claim("any")
    assert states(client, used, idle) == ["stopping", "stopping"]


def test_a_loading_endpoint_has_its_turn(
    client: TestClient, model: Model, life: Life, claim: Claim, make_job: Callable[..., str]
) -> None:
    endpoint = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    life.launch(endpoint)
    make_job(gpus=4)

    claim("any")

    assert (states(client, endpoint), blocking(client)) == (["starting"], {model.name: "busy"})


def test_no_more_endpoints_are_stopped_than_needed(
    client: TestClient, serve: Serve, claim: Claim, make_job: Callable[..., str]
) -> None:
    idle = [serve(f"idle-{number}", used_s=100 + number) for number in range(4)]
    make_job(gpus=1)

    claim()
    claim()

    assert states(client, *idle) == ["ready", "ready", "ready", "stopping"]


def test_the_expected_start_counts_on_what_is_preempted(
    client: TestClient, serve: Serve, make_job: Callable[..., str]
) -> None:
    serve("one", used_s=61)
    make_job(gpus=4)
    (waiting,) = client.get("/api/v1/jobs/queue").json()["items"]
    assert waiting["start"]["seconds"] == 0

    serve("two", used_s=61, preemptible=False)
    (waiting,) = client.get("/api/v1/jobs/queue").json()["items"]
    assert (waiting["start"]["seconds"], waiting["start"]["unknown"]) == (None, "Endpoint two")


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_outlasts_the_grace_is_told_why_its_engine_went(
    client: TestClient,
    serve: Serve,
    claim: Claim,
    life: Life,
    engine: EngineServer,
    make_job: Callable[..., str],
    stream: bool,
) -> None:
    endpoint = serve("used")
    training = make_job(name="big", gpus=4)
    engine.may_go_on.clear()

    def preempt() -> None:
        wait_until(lambda: bool(engine.bodies), 10, "the engine got the request")
        claim("any")
        life.end(endpoint, JobState.STOPPED)

    thread = threading.Thread(target=preempt)
    thread.start()
    body = {"model": "used", "prompt": "1", "stream": stream}
    answer = client.post("/v1/completions", json=body)
    thread.join()

    text = answer.text
    assert "endpoint_preempted" in text
    assert f"Stopped to make room for job big ({training})." in text
    if not stream:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")


def test_an_adapter_in_use_or_kept_keeps_its_engine(
    client: TestClient,
    database: Database,
    settings: Settings,
    serve: Serve,
    claim: Claim,
    make_job: Callable[..., str],
) -> None:
    settings.endpoint_max_adapters = 4
    base = serve("base", used_s=900)
    source = make_job(state=JobState.SUCCEEDED, model_id=base["model"]["id"], params={"lora_rank": 8})
    folder: Path = settings.checkpoint_dir(source) / "global_step_3"
    (folder / "lora_adapter").mkdir(parents=True)
    (folder / "lora_adapter" / "adapter_config.json").write_text('{"r": 8, "peft_type": "LORA"}')
    row = Checkpoint(job_id=source, step=3, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now())
    with database.write() as session:
        session.add(row)
        host = repository.find_endpoint(session, endpoint_id=base["id"])
        assert host is not None
        host.max_lora_rank = 16
        session.add(host)
    adapter = client.post(f"/api/v1/jobs/{source}/checkpoints/3/endpoint").json()
    assert adapter["run_id"] == base["run_id"]
    training = make_job(gpus=4)

    claim()
    assert states(client, base) == ["ready"], "the adapter was asked for just now"
    path = f"/api/v1/jobs/{source}/checkpoints/3/endpoint"
    client.post(path, json={"preemptible": False})
    claim("any")
    assert states(client, base) == ["ready"]
    client.post(path, json={"preemptible": True})
    claim("any")
    assert states(client, base, adapter) == ["stopping", "stopping"]
    assert read(client, adapter)["preempted_by"] == {"id": training, "name": "a job"}
