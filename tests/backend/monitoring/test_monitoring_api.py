"""The dashboard's state and the figures for Prometheus, over HTTP."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from trellis_api.core import prometheus
from trellis_api.core.columns import utc_now
from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import Settings
from trellis_api.main import create_app
from trellis_contracts.states import JobState
from trellis_testing.waiting import wait_until


def read_dashboard(client: TestClient) -> dict[str, Any]:
    answer = client.get("/api/v1/monitoring/dashboard")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_jobs_are_counted_listed_and_queued_in_order(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    make_job(name="low", priority=0)
    make_job(name="high", priority=5)
    make_job(name="at work", state=JobState.RUNNING, gpus=2, step=3, total_steps=12)
    make_job(name="broken", state=JobState.CRASHED, reason="killed", cause="killed", finished_at=utc_now())

    dashboard = read_dashboard(client)

    assert [job["name"] for job in dashboard["queue"]] == ["high", "low"]
    assert [job["queue_position"] for job in dashboard["queue"]] == [1, 2]
    assert [job["name"] for job in dashboard["running"]] == ["at work"]
    assert dashboard["running"][0]["progress"]["fraction"] == 0.25
    assert dashboard["slots"] == {"used": 2, "total": 4, "price": None}
    assert dashboard["recent_failures"][0]["failure"]["reason"] == "killed"
    assert dashboard["jobs_by_state"] == {
        **{state.value: 0 for state in JobState},
        "queued": 2,
        "running": 1,
        "crashed": 1,
    }


def test_a_running_api_measures_itself_in_the_background(tmp_path: Path) -> None:
    settings = Settings(data_root=tmp_path / "root", redis_url=None, min_free_disk_bytes=0)
    upgrade(settings)

    with TestClient(create_app(settings)) as client:
        token = settings.admin_token_path.read_text().strip()
        client.headers["Authorization"] = f"Bearer {token}"

        def read_measured() -> dict[str, Any]:
            seen = read_dashboard(client)
            return {} if seen["resources"]["age_s"] is None else seen

        dashboard = wait_until(read_measured, 10, "the first measurement")
        up = read_figures(client)['trellis_component_up{component="database"}']

    components = {item["name"]: item for item in dashboard["components"]}
    assert list(components) == ["database", "redis", "workers", "beat", "ray", "disk", "supervisor"]
    assert [components[name]["health"] for name in ("database", "redis", "disk")] == [
        "ok",
        "not_configured",
        "ok",
    ]
    assert dashboard["health"] == "ok"
    assert dashboard["resources"]["memory_total_bytes"] > 0
    assert dashboard["versions"]["trellis-platform"]
    assert up == 1


def test_the_dashboard_needs_a_login(anonymous: TestClient) -> None:
    assert anonymous.get("/api/v1/monitoring/dashboard").status_code == 401


def read_figures(client: TestClient) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = re.findall(r"^([a-z_]+(?:\{.*\})?) (\S+)$", answer.text, re.MULTILINE)
    return {name: float(value) for name, value in lines}


def test_requests_are_counted_by_route_not_by_id(client: TestClient) -> None:
    name = 'trellis_http_requests_total{method="GET",route="/api/v1/datasets/{dataset_id}",status="404"}'
    before = read_figures(client).get(name, 0)

    for number in range(3):
        client.get(f"/api/v1/datasets/ds_{number}")

    figures = read_figures(client)
    assert figures[name] == before + 3
    assert 'trellis_http_request_seconds_count{method="GET",route="/api/v1/datasets/{dataset_id}"}' in figures


def test_unknown_paths_and_methods_make_one_series(client: TestClient) -> None:
    client.get("/api/v1/nowhere/1")
    client.get("/api/v1/nowhere/2")
    client.request("BREW", "/api/v1/jobs")

    assert not [name for name in read_figures(client) if "nowhere" in name or "BREW" in name]


def test_jobs_and_components_are_figures(client: TestClient, make_job: Callable[..., str]) -> None:
    make_job()

    figures = read_figures(client)

    assert figures['trellis_jobs{state="queued"}'] == 1
    assert figures['trellis_jobs{state="failed"}'] == 0


def test_ingest_counters_are_exported(client: TestClient) -> None:
    before = read_figures(client)["trellis_ingest_points_total"]

    prometheus.INGEST_POINTS.inc(7)

    assert read_figures(client)["trellis_ingest_points_total"] == before + 7


def test_figures_can_be_scraped_without_a_login(anonymous: TestClient) -> None:
    assert anonymous.get("/metrics").status_code == 200
