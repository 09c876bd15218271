"""``trellis.Client`` against a scripted platform: which one it is, streams, files, and whole curves."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import trellis

Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("TRELLIS_URL", "TRELLIS_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def connect(answer: Answer) -> trellis.Client:
    return trellis.Client("http://platform", "secret", transport=httpx.MockTransport(answer))


def test_the_platform_is_that_of_the_environment_or_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="trellis login URL"):
        trellis.Client()
    folder = tmp_path / "config" / "trellis"
    folder.mkdir(parents=True)
    (folder / "connection.json").write_text('{"url": "https://a.example", "token": "a"}')
    assert trellis.Client().url == "https://a.example"
    # The token of one platform is not sent to another.
    with pytest.raises(ValueError, match="no platform is named"):
        trellis.Client("https://b.example")
    monkeypatch.setenv("TRELLIS_URL", "https://c.example")
    monkeypatch.setenv("TRELLIS_TOKEN", "c")
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.host, request.headers["Authorization"]))
        return httpx.Response(200, json={"name": "admin", "method": "token"})

    assert trellis.Client(transport=httpx.MockTransport(answer)).me()["name"] == "admin"
    assert seen == [("c.example", "Bearer c")]


def test_curves_come_whole_however_long_they_are() -> None:
    stored = {step: step / 2 for step in range(45_000)}
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("metric-keys"):
            return httpx.Response(200, json=[{"key": "loss", "last_step": 44_999, "last_value": 0.0}])
        params = request.url.params
        first, last = int(params["from_step"]), int(params.get("to_step", 10**9))
        asked.append((first, last))
        steps = [step for step in stored if first <= step <= last]
        kept = steps[:: 1 + len(steps) // 20_001]
        series = {
            "key": "loss", "steps": kept, "values": [stored[step] for step in kept], "non_finite": [],
            "total_points": len(steps), "is_downsampled": len(kept) < len(steps),
        }  # fmt: skip
        return httpx.Response(200, json={"series": [series], "last_event_id": 1})

    with connect(answer) as platform:
        assert platform.jobs.metrics("job_1") == {"loss": stored}
    assert asked == [(0, 10**9), (0, 19_999), (20_000, 10**9), (20_000, 39_999), (40_000, 10**9)]


def test_events_are_read_until_the_job_has_ended() -> None:
    lines = [
        "retry: 1000", "", ": still here", "",
        "id: 7", "event: metrics", 'data: {"step": 1, "values": {"loss": 2.0}}', "",
        "id: 8", "event: state", 'data: {"attempt": 1, "state": "succeeded"}', "",
        "id: 9", "event: logs", "data: {}", "", "",
    ]  # fmt: skip

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            return httpx.Response(200, text="\n".join(lines))
        return httpx.Response(200, json={"state": "running"})

    found = [(event.kind, event.id, event.data.get("step")) for event in connect(answer).jobs.events("job_1")]

    assert found == [("metrics", "7", 1), ("state", "8", None)]


def test_a_download_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"n": n}) + "\n" for n in range(1000))

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.params.get("version") == "lost":
            body = {"error": "version_not_found", "message": "There is none.", "details": None}
            return httpx.Response(404, json=body)
        return httpx.Response(200, text=rows)

    platform = connect(answer)
    assert platform.datasets.download("ds_1", tmp_path / "rows.jsonl").read_text() == rows
    with pytest.raises(trellis.ApiError, match="There is none") as caught:
        platform.datasets.download("ds_1", tmp_path / "lost.jsonl", version="lost")
    assert (caught.value.status, caught.value.code) == (404, "version_not_found")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl"]


def test_endpoints_are_started_by_model_or_by_checkpoint() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.path))
        return httpx.Response(202, json={"id": "ep_1", "state": "ready"})

    with connect(answer) as platform:
        platform.endpoints.start("mdl_1", idle_timeout_s=60)
        platform.endpoints.start(job="job_1", step=20)
        assert platform.endpoints.wait("ep_1")["state"] == "ready"
        platform.endpoints.stop("ep_1")
        with pytest.raises(ValueError, match="either a model, or a job and a step"):
            platform.endpoints.start("mdl_1", job="job_1", step=20)
    assert asked == [
        ("POST", "/api/v1/models/mdl_1/endpoint"),
        ("POST", "/api/v1/jobs/job_1/checkpoints/20/endpoint"),
        ("GET", "/api/v1/endpoints/ep_1"),
        ("DELETE", "/api/v1/endpoints/ep_1"),
    ]
