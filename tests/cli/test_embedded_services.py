"""The embedded Ray and Redis accept nobody without their token or password, whenever they were started."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import grpc
import httpx
import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from trellis_cli.services.platform import Platform
from trellis_cli.services.process import ProcessIdentity
from trellis_cli.services.ray import RayService
from trellis_cli.services.redis import RedisService
from trellis_testing.ray_cluster import driver_environment, local_platform, running_service
from trellis_tools.chaos.processes import kill_all, list_tree

pytestmark = [pytest.mark.slow, pytest.mark.faults]

LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
FORGED = "0" * 64
#: A path of each HTTP server of the head; jobs are submitted and environments are built through these.
HTTP_PATHS = {
    "dashboard": ("/api/jobs/", "/nodes?view=summary", "/api/v0/actors", "/api/cluster_status", "/logs/"),
    "dashboard_agent": ("/api/job_agent/jobs/", "/logs/"),
    "runtime_env_agent": ("/get_or_create_runtime_env", "/"),
}
#: A method of each gRPC server of the head.
GRPC_METHODS = {
    "gcs": "/ray.rpc.InternalKVGcsService/InternalKVKeys",
    "node_manager": "/ray.rpc.NodeManagerService/GetNodeStats",
    "object_manager": "/ray.rpc.ObjectManagerService/Pull",
    "dashboard_agent_grpc": "/ray.rpc.ReporterService/HealthCheck",
}
#: Servers of Ray that know no token: they only read out measurements, whatever is asked.
METRICS_PORTS = ("metrics_export", "autoscaler_metrics", "dashboard_metrics")

DRIVER = """
import ray
from ray.job_submission import JobSubmissionClient

def attempt(name, act):
    try:
        print(name, "accepted", act())
    except Exception as error:
        print(name, "refused", error)

def run_task():
    ray.init(log_to_driver=False)
    return ray.get(ray.remote(num_cpus=1)(lambda: 7).remote())

attempt("driver", run_task)
attempt("jobs", lambda: JobSubmissionClient({url!r}).submit_job(entrypoint="true"))
"""


@pytest.fixture
def platform() -> Iterator[Platform]:
    with local_platform() as platform:
        yield platform


def list_listening(leader: ProcessIdentity) -> dict[int, str]:
    """The address of each port on which a service's processes listen."""
    found = {}
    for process in list_tree(leader.pid):
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                found[connection.laddr.port] = connection.laddr.ip
    return found


def call(port: int, method: str, token: str | None) -> grpc.StatusCode:
    """The status of a gRPC call without contents."""
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            channel.unary_unary(method)(b"", metadata=metadata, timeout=10)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def join(platform: Platform, token: str | None) -> list[str]:
    """What happens to a driver, and to a job that a client submits, with a token or without one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= driver_environment(platform)
    del environment["RAY_AUTH_TOKEN_PATH"]
    if token is None:
        environment["RAY_AUTH_MODE"] = "disabled"
    else:
        environment["RAY_AUTH_TOKEN"] = token
    code = DRIVER.format(url=platform.ray_dashboard_url)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    lines = [
        " ".join(line.split()[:2]) for line in done.stdout.splitlines() if line.startswith(("driver", "jobs"))
    ]
    assert done.returncode == 0, done.stderr[-2000:]
    return lines


def expect_only_the_token_accepted(platform: Platform, leader: ProcessIdentity) -> None:
    ports, token = platform.state.ray_ports, platform.layout.ray_token()

    listening = list_listening(leader)
    assert set(listening.values()) <= set(LOOPBACK)
    assert set(ports.values()) <= set(listening)

    for server, paths in HTTP_PATHS.items():
        for path in paths:
            for method in ("GET", "POST"):
                url = f"http://127.0.0.1:{ports[server]}{path}"
                statuses = [
                    httpx.request(method, url, headers=headers, timeout=10).status_code
                    for headers in ({}, {"Authorization": f"Bearer {FORGED}"}, {"Authorization": "Bearer"})
                ]
                assert statuses == [401, 403, 403], (server, path, method)
    jobs = f"{platform.ray_dashboard_url}/api/jobs/"
    assert httpx.get(jobs, headers={"Authorization": f"Bearer {token}"}).status_code == 200

    for server, method in GRPC_METHODS.items():
        for wrong in (None, FORGED):
            assert call(ports[server], method, wrong) is grpc.StatusCode.UNAUTHENTICATED, server
        assert call(ports[server], method, token) is not grpc.StatusCode.UNAUTHENTICATED, server

    for server in METRICS_PORTS:
        for method in ("GET", "POST"):
            found = httpx.request(method, f"http://127.0.0.1:{ports[server]}/api/jobs/", timeout=10)
            assert found.status_code == 405 or found.text.startswith("# HELP"), server
            assert token not in found.text

    assert set(listening) == set(ports.values()), "a server of Ray that this test doesn't know"


@pytest.mark.timeout(900)
def test_the_cluster_accepts_only_its_token_on_loopback_after_each_start(platform: Platform) -> None:
    service = RayService(platform)
    for is_killed in (True, False):
        with running_service(service) as head:
            expect_only_the_token_accepted(platform, head)
            if is_killed:
                assert not kill_all(list_tree(head.pid))
    with running_service(service) as head:
        expect_only_the_token_accepted(platform, head)
        accepted = join(platform, platform.layout.ray_token())
        refused = [join(platform, token) for token in (None, FORGED)]

    assert accepted == ["driver accepted", "jobs accepted"]
    assert refused == [["driver refused", "jobs refused"]] * 2


def test_the_broker_accepts_only_its_password_on_loopback_after_each_start(platform: Platform) -> None:
    service = RedisService(platform)
    for is_killed in (True, False, False):
        with running_service(service) as server:
            expect_only_the_password_accepted(platform, server)
            if is_killed:
                assert not kill_all(list_tree(server.pid))


def expect_only_the_password_accepted(platform: Platform, server: ProcessIdentity) -> None:
    port = platform.state.redis_port
    assert list_listening(server) == {port: "127.0.0.1"}
    once = Retry(NoBackoff(), 0)
    for command in (["KEYS", "*"], ["CONFIG", "GET", "*"], ["FLUSHALL"], ["LPUSH", "celery", "{}"], ["PING"]):
        with redis.Redis(port=port, retry=once) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.execute_command(*command)
    for forged in ("", "x", FORGED):
        with redis.Redis(port=port, password=forged, retry=once) as stranger, pytest.raises(redis.RedisError):
            stranger.execute_command("AUTH", forged)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
        raw.sendall(b"CONFIG GET requirepass\r\n")
        assert raw.recv(1000).startswith(b"-NOAUTH")
    with redis.Redis.from_url(platform.redis_url) as owner:
        assert owner.ping()
