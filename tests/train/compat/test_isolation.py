"""Jobs of one cluster do not meet; test_changes_are_needed.py looks at their sockets."""

from types import ModuleType
from typing import Any

import pytest
import ray
from transfer_queue import interface
from trellis_testing.engine_changes import changed
from trellis_train.compat import isolation
from trellis_train.compat.change import EngineMoved

OWN_NAMESPACE = "transfer_queue-job_a-2"


class Cluster:
    """Answers as Ray does where nobody has started a controller, and starts none."""

    def __init__(self) -> None:
        self.looked_in: list[str | None] = []
        self.started_in: list[str | None] = []

    def get_actor(self, name: str, namespace: str | None = None) -> Any:
        self.looked_in.append(namespace)
        raise ValueError(f"no actor {name}")

    def options(self, *, name: str, namespace: str | None = None) -> Any:
        self.started_in.append(namespace)
        raise ConnectionError("nothing is started here")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(ray, "get_actor", cluster.get_actor)
    monkeypatch.setattr(interface.TransferQueueController, "options", cluster.options)
    return cluster


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> ModuleType:
    """TransferQueue's module in a process of the job; as it was again after the test."""
    monkeypatch.setenv(isolation.RUN_VARIABLE, "job_a-2")
    for name in ("ray", "TransferQueueController"):
        original = getattr(interface, name)
        monkeypatch.setattr(interface, name, changed(f"transfer_queue.interface.{name}", original))
    monkeypatch.setattr(interface, "_TQ_CONTROLLER", None)
    return interface


def test_a_job_looks_for_and_starts_a_transfer_queue_in_its_own_namespace(
    queue: ModuleType, cluster: Cluster
) -> None:
    with pytest.raises(ConnectionError):
        queue.init()

    assert (cluster.looked_in, cluster.started_in) == ([OWN_NAMESPACE], [OWN_NAMESPACE])


def test_a_transfer_queue_that_was_isolated_reaches_all_else_of_ray(queue: ModuleType) -> None:
    assert queue.ray.get is ray.get


def test_a_transfer_queue_with_another_namespace_is_not_shared_in_silence(
    queue: ModuleType, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "SHARED_NAMESPACE", "renamed")

    with pytest.raises(EngineMoved, match="asked for namespace 'transfer_queue', not 'renamed'"):
        queue.init()

    assert (cluster.looked_in, cluster.started_in) == ([], [])


def test_a_socket_with_another_name_is_not_shared_in_silence() -> None:
    with pytest.raises(EngineMoved, match="renamed"):
        isolation._own_socket("ipc:///tmp/renamed-01000000-replica-0-rank-0.sock")
