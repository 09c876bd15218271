"""Where the processes of a run are forked from one."""

import subprocess
import sys

import pytest
from trellis_train.cpu import forking
from trellis_train.cpu.changes import FORKING
from trellis_train.cpu.forkserver.server import ForkServer
from trellis_train.cpu.layer import CpuLayer
from trellis_train.cpu.pieces import LEAVE_OUT_VARIABLE
from trellis_train.platform.activation import PLATFORM_VARIABLE


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """On a CPU without a cluster; what servers were to import."""
    servers: list[tuple[str, ...]] = []

    def start(*modules: tuple[str, ...]) -> ForkServer:
        servers.append(modules[0])
        return ForkServer("address")

    monkeypatch.setattr(forking.server, "start", start)
    monkeypatch.setenv(PLATFORM_VARIABLE, "cpu")
    monkeypatch.delenv(forking._ADDRESS_VARIABLE, raising=False)
    return servers


@pytest.mark.parametrize("address", [None, "", "127.0.0.1:6379", "localhost:6379", "[::1]:6379"])
def test_they_are_on_a_cluster_of_this_machine_alone(
    address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if address is not None:
        monkeypatch.setenv(forking._ADDRESS_VARIABLE, address)
    assert forking.start_fork_server() == ForkServer("address")


@pytest.mark.parametrize(
    "address", ["10.0.0.1:6379", "head.cluster:6379", "auto", "ray://127.0.0.1.example:1"]
)
def test_they_are_not_where_other_machines_can_join(
    address: str, started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(forking._ADDRESS_VARIABLE, address)
    assert forking.start_fork_server() is None
    assert started == []


def test_they_are_not_on_gpus(started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLATFORM_VARIABLE, "cuda")
    assert forking.start_fork_server() is None
    assert started == []


def test_they_are_left_out_by_name(started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEAVE_OUT_VARIABLE, FORKING)
    layer = CpuLayer()

    layer.prepare()

    assert layer.interpreter() is None
    assert started == []


def test_what_loads_rays_core_is_not_imported_before_a_job_is_known() -> None:
    code = f"import {', '.join(forking.MODULES)}, sys; print('ray' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
