"""The endpoint of a campaign: when it counts as settled, and what its ended attempts have left."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.errors import Problem
from trellis_contracts.events import ServingEvent
from trellis_tools.chaos.fault import MissedError
from trellis_tools.chaos.faults import FAULTS, FREEZE_SERVER, KILL_SERVER
from trellis_tools.chaos.ground import Ground
from trellis_tools.chaos.plan import PlannedFault
from trellis_tools.chaos.serving import Serving

READY = {"id": "ep_1", "name": "starter", "run_id": "job_1", "attempt": 2, "state": "ready", "failure": None}


@dataclass
class Client:
    """The API: says of the endpoint what it was given."""

    url: str = "http://127.0.0.1:9"
    token_header: str = "Bearer x"
    endpoint: dict[str, Any] = field(default_factory=lambda: dict(READY))
    deleted: list[str] = field(default_factory=list)

    def get(self, path: str) -> dict[str, Any]:
        assert path == "/endpoints/ep_1"
        return self.endpoint

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert (path, "idle_timeout_s" in body) == ("/models/mdl_1/endpoint", True)
        return self.endpoint

    def delete(self, path: str) -> None:
        self.deleted.append(path)


@dataclass
class StandIn:
    """What a campaign's platform says, without a platform."""

    data_root: Path
    client: Client = field(default_factory=Client)
    serving_job: str | None = None
    run: object | None = object()
    asked: list[str] = field(default_factory=list)

    def find_serving(self) -> object | None:
        return self.run

    def list_naming(self, needles: list[str]) -> list[str]:
        self.asked = needles
        return [f"1 {needle}" for needle in needles]


@pytest.fixture
def ground(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


@pytest.fixture
def serving(ground: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    monkeypatch.setattr("trellis_tools.chaos.chats.Chats.start", lambda _: None)
    serving: Any = Serving(ground, "mdl_1")  # type: ignore[arg-type]
    serving.start()
    yield serving
    serving.end_chats()


def is_settled(serving: Serving, monkeypatch: pytest.MonkeyPatch, *, is_answering: bool = False) -> bool:
    monkeypatch.setattr(serving, "is_answering", lambda _: is_answering)
    return serving.is_settled(since=5.0, before=2)


def test_an_endpoint_that_does_not_start_ends_the_campaign(ground: StandIn) -> None:
    ground.client.endpoint |= {"state": "failed", "failure": {"reason": "No memory."}}

    with pytest.raises(Problem, match="the endpoint does not start: failed: No memory"):
        Serving(ground, "mdl_1").start()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "has_run", "is_answering", "expected"),
    [
        ({"state": "failed", "failure": {"reason": "It died."}}, False, False, True),
        ({"state": "failed"}, False, False, False),
        ({"state": "ready"}, True, True, True),
        ({"state": "ready"}, False, False, False),
        ({"state": "starting"}, True, False, True),
        ({"state": "starting"}, False, False, False),
        ({"state": "starting", "attempt": 3}, False, False, True),
        ({"state": "stopping"}, True, False, False),
        ({"state": "stopped"}, False, False, False),
    ],
    ids=[
        "failed with a reason",
        "failed without one",
        "answers",
        "nobody answers",
        "loads",
        "nothing loads",
        "is started again",
        "leaves",
        "nobody asked it to",
    ],
)
def test_an_endpoint_is_settled_when_the_platform_knows_how_it_stands(
    serving: Serving,
    ground: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    *,
    changes: dict[str, Any],
    has_run: bool,
    is_answering: bool,
    expected: bool,
) -> None:
    ground.client.endpoint = READY | changes
    ground.run = object() if has_run else None

    assert is_settled(serving, monkeypatch, is_answering=is_answering) == expected


def test_the_campaign_knows_the_endpoints_run_from_those_that_train(
    serving: Serving, ground: StandIn
) -> None:
    assert ground.serving_job == serving.run_id == "job_1"

    serving.ask_to_stop()

    assert ground.client.deleted == ["/endpoints/ep_1"]


def test_processes_of_ended_attempts_are_left_over(serving: Serving, ground: StandIn) -> None:
    running = serving.list_left()
    ground.client.endpoint = READY | {"state": "stopped"}
    serving.read()
    stopped = serving.list_left()

    assert running == ["1 /jobs/job_1/attempt-1/"]
    assert stopped == ["1 /jobs/job_1/attempt-1/", "1 /jobs/job_1/attempt-2/"]


def test_a_port_on_which_an_ended_engine_listens_is_left_over(serving: Serving, ground: StandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as old, socket.create_server(("127.0.0.1", 0)) as new:
        ports = [old.getsockname()[1], new.getsockname()[1]]
        for attempt, port in enumerate(ports, start=1):
            folder = ground.data_root / "jobs" / "job_1" / f"attempt-{attempt}" / "events"
            folder.mkdir(parents=True)
            event = ServingEvent(time=datetime.now(UTC), host=ip_address("127.0.0.1"), port=port)
            (folder / "server-1.jsonl").write_text(event.model_dump_json() + "\n")
        left = serving.list_ports()

    assert left == ports[:1]
    assert serving.list_ports() == []


@pytest.mark.parametrize("kind", [KILL_SERVER, FREEZE_SERVER])
def test_an_engine_that_does_not_serve_is_missed(
    ground: StandIn, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("trellis_tools.chaos.fault._SERVER_TIMEOUT_S", 0.0)
    ground.run = None
    as_ground: Ground = ground  # type: ignore[assignment]

    with pytest.raises(MissedError, match="no engine served"):
        FAULTS[kind](PlannedFault(1, kind, 0.0, 0.0, 1)).find(as_ground)
