"""Probes tell the truth about a part that works, is away, or answers nonsense."""

import itertools
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import redis
from trellis_api.core.database import Database
from trellis_api.core.ray_cluster import find_nodes, list_nodes
from trellis_api.core.settings import Settings
from trellis_api.monitoring import machine, measurements, probes
from trellis_api.monitoring.machine import look_at_machine, parse_gpus
from trellis_api.monitoring.measurements import Measurement, component_probes
from trellis_api.monitoring.probes import Probes
from trellis_api.monitoring.schemas import ComponentHealth
from trellis_cli.services.redis import find_redis_server
from trellis_contracts.presence import BEAT_KEY, LIFETIME_S, WORKER_KEY_PREFIX
from trellis_workers.core.presence import PresenceKeeper

RunRedis = Callable[[Path], AbstractContextManager[str]]


@pytest.fixture
def run_redis() -> RunRedis:
    """Runs a real Redis server of the test's own behind a socket; its address is the context's value."""

    @contextmanager
    def run(socket: Path) -> Iterator[str]:
        command = [
            find_redis_server(),
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--dir",
            str(socket.parent),
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(socket.exists)
        yield f"unix://{socket}"
        process.terminate()
        process.wait(timeout=10)

    return run


def wait_until(condition: Callable[[], object], *, timeout_s: float = 10) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Stands in for Ray's Jobs API: what it is to answer, and the headers that it was sent."""
    script: dict[str, Any] = {
        "status": 200,
        "body": b'{"ray_version": "2.60.0"}',
        "bodies": {},
        "headers": {},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script["headers"] = dict(self.headers)
            script["path"] = self.path
            body = script["bodies"].get(self.path, script["body"])
            self.send_response(script["status"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    script["url"] = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    yield script
    server.shutdown()
    server.server_close()


def measure(settings: Settings, name: str) -> Measurement:
    database = Database(settings)
    try:
        return component_probes(settings, database)[name]()
    finally:
        database.dispose()


def test_the_database_answers_with_its_latency(settings: Settings) -> None:
    settings.data_root.mkdir(parents=True)

    found = measure(settings, "database")

    assert found.health is ComponentHealth.OK
    assert found.latency_ms is not None
    assert found.latency_ms > 0


def test_a_database_that_is_away_is_down(settings: Settings) -> None:
    settings.database_url = f"sqlite:///{settings.data_root / 'no' / 'such' / 'folder.db'}"

    assert measure(settings, "database").health is ComponentHealth.DOWN


@pytest.mark.parametrize("name", ["redis", "workers", "beat", "ray"])
def test_what_is_not_set_up_says_so(settings: Settings, name: str) -> None:
    assert measure(settings, name).health is ComponentHealth.NOT_CONFIGURED


@pytest.mark.parametrize("name", ["redis", "workers", "beat"])
def test_redis_that_is_away_is_down_and_quick(settings: Settings, name: str) -> None:
    settings.redis_url = "redis://127.0.0.1:1/0"
    started = time.monotonic()

    found = measure(settings, name)

    assert found.health is ComponentHealth.DOWN
    assert time.monotonic() - started < 2 * measurements.TIMEOUT_S


def test_workers_and_beat_are_seen_while_they_live(
    settings: Settings, run_redis: RunRedis, tmp_path: Path
) -> None:
    with run_redis(tmp_path / "redis.sock") as url:
        settings.redis_url = url
        client = redis.Redis.from_url(url)
        keepers = [PresenceKeeper(url, key) for key in (BEAT_KEY, f"{WORKER_KEY_PREFIX}here:1")]
        before = [measure(settings, name).health for name in ("workers", "beat")]

        for keeper in keepers:
            keeper.start()
        wait_until(lambda: client.dbsize() == 2)
        during = [measure(settings, name).message for name in ("workers", "beat")]
        remaining_s: list[Any] = [client.ttl(key) for key in client.scan_iter()]
        for keeper in keepers:
            keeper.stop()
        after = [measure(settings, name).health for name in ("workers", "beat")]

    assert before == after == [ComponentHealth.DOWN, ComponentHealth.DOWN]
    assert during == ["1 worker running.", "Running."]
    assert len([ttl for ttl in remaining_s if 0 < ttl <= LIFETIME_S]) == 2


def test_presence_survives_a_redis_that_comes_late(run_redis: RunRedis, tmp_path: Path) -> None:
    socket = tmp_path / "redis.sock"
    keeper = PresenceKeeper(f"unix://{socket}", BEAT_KEY, interval_s=0.05)
    keeper.start()
    time.sleep(0.2)

    with run_redis(socket) as url:
        client = redis.Redis.from_url(url)
        is_seen = wait_until(lambda: client.exists(BEAT_KEY))
        keeper.stop()

    assert is_seen


def test_ray_is_asked_with_its_own_token(
    settings: Settings, ray: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ray_dashboard_url = ray["url"]
    (tmp_path / "token").write_text("secret of ray\n")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))

    found = measure(settings, "ray")

    assert (found.health, found.message) == (ComponentHealth.OK, "Connected (Ray 2.60.0).")
    assert ray["headers"]["Authorization"] == "Bearer secret of ray"
    assert ray["path"] == "/api/version"


@pytest.mark.parametrize(
    ("status", "body", "part"),
    [
        (401, b"", "the token is missing or wrong"),
        (500, b"", "status 500"),
        (200, b"<html>", "not Ray"),
        (200, b"[]", "not Ray"),
    ],
)
def test_ray_that_answers_wrongly_is_down(
    settings: Settings, ray: dict[str, Any], status: int, body: bytes, part: str
) -> None:
    settings.ray_dashboard_url = ray["url"]
    ray.update(status=status, body=body)

    found = measure(settings, "ray")

    assert found.health is ComponentHealth.DOWN
    assert part in found.message


def test_ray_that_is_away_is_down(settings: Settings) -> None:
    settings.ray_dashboard_url = "http://127.0.0.1:1"

    assert measure(settings, "ray").health is ComponentHealth.DOWN


@pytest.mark.parametrize(
    ("share", "health"),
    [(0.1, ComponentHealth.OK), (0.9, ComponentHealth.DEGRADED), (1.1, ComponentHealth.DOWN)],
)
def test_the_disk_is_judged_by_what_launching_needs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, share: float, health: ComponentHealth
) -> None:
    settings.data_root.mkdir(parents=True)
    free = 10 * 1024**3
    usage = type("Usage", (), {"free": free, "total": 2 * free})
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    settings.min_free_disk_bytes = int(free * share)

    assert measure(settings, "disk").health is health


def test_a_missing_data_root_is_down(settings: Settings) -> None:
    assert measure(settings, "disk").health is ComponentHealth.DOWN


def board(**components: Callable[[], Measurement]) -> Probes:
    return Probes(components, lambda: look_at_machine(Path("/")), interval_s=0.01, unwatched_interval_s=0.01)


def test_nothing_is_claimed_before_the_first_measurement() -> None:
    found = board(database=lambda: Measurement(ComponentHealth.OK, "fine")).components()[0]

    assert (found.health, found.age_s) == (ComponentHealth.UNKNOWN, None)


def test_a_probe_that_breaks_is_unknown_and_does_not_stop_the_others() -> None:
    def broken() -> Measurement:
        raise RuntimeError("unforeseen")

    probes = board(ray=broken, redis=lambda: Measurement(ComponentHealth.OK, "fine"))
    probes.measure_once()

    assert [found.health for found in probes.components()] == [ComponentHealth.UNKNOWN, ComponentHealth.OK]


def test_an_old_measurement_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = time.monotonic() - probes.MAX_AGE_S - 1
    stale = board(redis=lambda: Measurement(ComponentHealth.OK, "fine", at=long_ago))
    stale.measure_once()

    found = stale.components()[0]

    assert found.health is ComponentHealth.UNKNOWN
    assert "s old: fine" in found.message


def test_the_thread_measures_again_and_again_until_it_is_stopped() -> None:
    numbers = itertools.count(1)
    enough = threading.Event()

    def count() -> Measurement:
        number = next(numbers)
        if number == 3:
            enough.set()
        return Measurement(ComponentHealth.OK, str(number))

    running = board(redis=count)
    running.start()
    has_repeated = enough.wait(10)
    running.stop()
    last = running.components()[0].message
    time.sleep(0.05)

    assert has_repeated
    assert running.components()[0].message == last
    assert "monitoring-probes" not in [thread.name for thread in threading.enumerate()]


def test_a_platform_that_nobody_looks_at_is_measured_rarely_and_at_once_when_somebody_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probes, "_WATCHED_S", 0.1)
    measured: list[float] = []

    def note() -> Measurement:
        measured.append(time.monotonic())
        return Measurement(ComponentHealth.OK, "fine")

    board = Probes(
        {"redis": note}, lambda: look_at_machine(Path("/")), interval_s=0.01, unwatched_interval_s=60
    )
    board.start()
    assert wait_until(lambda: bool(board.components()) and len(measured) > 3), "it measures while watched"
    assert wait_until(lambda: time.monotonic() - measured[-1] > 0.3), "it rests when nobody looks"
    before = len(measured)

    board.components()
    assert wait_until(lambda: len(measured) > before), "it measures as soon as somebody looks"

    board.stop()


def test_the_machine_is_measured_for_real(tmp_path: Path) -> None:
    found = look_at_machine(tmp_path)

    assert 0 < found.memory_used_bytes < found.memory_total_bytes
    assert found.disk_free_bytes is not None
    assert 0 < found.disk_free_bytes < (found.disk_total_bytes or 0)
    assert found.cpu_count >= 1


def test_gpus_are_read_from_what_nvidia_smi_prints() -> None:
    gpus = parse_gpus(
        "0, NVIDIA H200, 87, 1024, 143771, 41, 612.5\n1, NVIDIA GB10, [N/A], [N/A], [N/A], 38, [N/A]\nnoise\n"
    )

    assert [gpu.model_dump() for gpu in gpus] == [
        {
            "node": None,
            "index": 0,
            "name": "NVIDIA H200",
            "utilization_percent": 87.0,
            "memory_used_bytes": 1024 * 1024**2,
            "memory_total_bytes": 143771 * 1024**2,
            "temperature_celsius": 41.0,
            "power_watts": 612.5,
        },
        {
            "node": None,
            "index": 1,
            "name": "NVIDIA GB10",
            "utilization_percent": None,
            "memory_used_bytes": None,
            "memory_total_bytes": None,
            "temperature_celsius": 38.0,
            "power_watts": None,
        },
    ]


def test_a_broken_nvidia_smi_means_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")

    assert machine.list_gpus() == []


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="nvidia-smi is not installed")
def test_the_gpus_of_this_machine_are_listed() -> None:
    found = machine.list_gpus()

    assert found
    assert (found[0].memory_total_bytes or 0) > 0


def describe_cluster(script: dict[str, Any], settings: Settings, gpus: list[dict[str, Any]]) -> None:
    """Have Ray tell of a head without GPUs and of a node with two, in the form of its dashboard."""
    from ray.dashboard.utils import to_google_style

    def describe(name: str, resources: dict[str, float], devices: list[dict[str, Any]]) -> dict[str, Any]:
        raylet = {"nodeId": f"id-{name}", "state": "ALIVE", "resourcesTotal": resources}
        return {"hostname": name, "raylet": raylet, "gpus": [to_google_style(device) for device in devices]}

    nodes = [
        describe("ray-head", {"CPU": 4.0, "memory": 1.0}, []),
        describe("worker", {"CPU": 16.0, "GPU": 2.0}, gpus),
        {
            "hostname": "gone",
            "raylet": {"nodeId": "id-gone", "state": "DEAD", "resourcesTotal": {"GPU": 8.0}},
        },
    ]
    usage = {"id-ray-head": {"CPU": [1.0, 4.0]}, "id-worker": {"CPU": [3.0, 16.0], "GPU": [1.0, 2.0]}}
    status = {"clusterStatus": {"loadMetricsReport": {"usageByNode": usage}}}
    script["bodies"] = {
        "/nodes?view=summary": json.dumps({"data": {"summary": nodes}}).encode(),
        "/api/cluster_status": json.dumps({"data": status}).encode(),
    }
    settings.platform, settings.slots, settings.ray_dashboard_url = "cuda", 2, script["url"]


#: As Ray's agent measures a device (``ray.dashboard.modules.reporter.gpu_providers``), in MiB.
DEVICE = {
    "index": 1,
    "name": "NVIDIA H100",
    "uuid": "GPU-1",
    "utilization_gpu": 87,
    "memory_used": 1024,
    "memory_total": 81559,
    "processes_pids": None,
    "power_mw": 350_000,
    "temperature_c": 41,
}


def test_an_api_without_gpus_sees_those_of_the_clusters_nodes(
    settings: Settings, ray: dict[str, Any]
) -> None:
    from ray.dashboard.modules.reporter.gpu_providers import GpuUtilizationInfo

    describe_cluster(ray, settings, [DEVICE])

    nodes = find_nodes(settings)
    (gpu,) = look_at_machine(settings.data_root, nodes=nodes).gpus

    assert set(DEVICE) == set(GpuUtilizationInfo.__annotations__), "Ray's agent measures something else"
    assert gpu.model_dump() == {
        "node": "worker",
        "index": 1,
        "name": "NVIDIA H100",
        "utilization_percent": 87.0,
        "memory_used_bytes": 1024 * 1024**2,
        "memory_total_bytes": 81559 * 1024**2,
        "temperature_celsius": 41.0,
        "power_watts": 350.0,
    }
    assert nodes is not None
    assert [(node.hostname, node.gpus, node.count_free("CPU")) for node in nodes] == [
        ("worker", 2, 13),
        ("ray-head", 0, 3),
    ]


@pytest.mark.parametrize(
    ("slots", "health", "said"),
    [
        (2, ComponentHealth.OK, "2 nodes with 2 GPUs"),
        (4, ComponentHealth.DEGRADED, "TRELLIS_SLOTS is 4"),
    ],
)
def test_more_slots_than_the_nodes_have_gpus_are_a_warning(
    slots: int, health: ComponentHealth, said: str, settings: Settings, ray: dict[str, Any]
) -> None:
    describe_cluster(ray, settings, [])
    settings.slots = slots

    found = measure(settings, "ray")

    assert found.health is health
    assert said in found.message


def test_a_dashboard_that_answers_in_another_form_leaves_the_nodes_unknown(
    settings: Settings, ray: dict[str, Any]
) -> None:
    describe_cluster(ray, settings, [])
    ray["bodies"]["/nodes?view=summary"] = b'{"data": {"summary": [{"raylet": {"state": "ALIVE"}}]}}'

    found = measure(settings, "ray")

    assert found.health is ComponentHealth.DEGRADED
    assert find_nodes(settings) is None


def test_figures_in_another_form_do_not_hide_the_node(settings: Settings, ray: dict[str, Any]) -> None:
    describe_cluster(ray, settings, [])
    answer = json.loads(ray["bodies"]["/nodes?view=summary"])
    worker = answer["data"]["summary"][1]
    known = {"cpu": 5.0, "mem": [10, 4, 60.0, 6]}
    for unknown in (
        {"cpu": "much"},
        {"mem": {"total": 1}},
        {"mem": [1, 2]},
        {"disk": [1]},
        {"disk": {"/": {"total": 1}}},
        {"diskIoSpeed": {"read": 1}},
        {"networkSpeed": [1]},
        {},
    ):
        node = {**worker, **known, **unknown}
        ray["bodies"]["/nodes?view=summary"] = json.dumps({"data": {"summary": [node]}}).encode()

        (found,) = list_nodes(ray["url"])

        assert (found.hostname, found.gpus, bool(found.figures)) == ("worker", 2, not unknown), unknown


def test_on_a_cpu_no_cluster_is_asked(settings: Settings, ray: dict[str, Any]) -> None:
    describe_cluster(ray, settings, [DEVICE])
    settings.platform = "cpu"

    assert find_nodes(settings) is None
    assert "path" not in ray
