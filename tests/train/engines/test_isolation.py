"""Jobs of one cluster do not meet."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from trellis_train.engines import isolation


@pytest.fixture(autouse=True)
def run_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(isolation.RUN_VARIABLE, "job_a-2")


def test_a_job_finds_the_transfer_queue_of_its_own_namespace() -> None:
    asked: list[dict[str, Any]] = []
    module = ModuleType("interface")
    setattr(module, "ray", SimpleNamespace(get_actor=lambda *names, **options: asked.append(options), get=1))  # noqa: B010
    controller = SimpleNamespace(options=lambda **options: asked.append(options))
    setattr(module, "TransferQueueController", controller)  # noqa: B010

    isolation._isolate_queue(module)
    module.ray.get_actor("TransferQueueController", namespace="transfer_queue")
    module.TransferQueueController.options(name="TransferQueueController", namespace="transfer_queue")

    assert [options["namespace"] for options in asked] == ["transfer_queue-job_a-2"] * 2
    assert module.ray.get == 1


def test_sender_and_receiver_of_weights_agree_on_a_socket_of_their_own() -> None:
    handle = "ipc:///tmp/rl-colocate-zmq-01000000-replica-0-rank-0.sock"

    class ServerAdapter:
        def __init__(self) -> None:
            self.zmq_handle = handle

    class vLLMColocateWorkerExtension:
        def _get_zmq_handle(self) -> str:
            return handle

    sender, receiver = ModuleType("sender"), ModuleType("receiver")
    vars(sender)["ServerAdapter"] = ServerAdapter
    vars(receiver)["vLLMColocateWorkerExtension"] = vLLMColocateWorkerExtension
    isolation._isolate_sender(sender)
    isolation._isolate_receiver(receiver)

    own = "ipc:///tmp/rl-colocate-zmq-job_a-2-01000000-replica-0-rank-0.sock"
    assert ServerAdapter().zmq_handle == vLLMColocateWorkerExtension()._get_zmq_handle() == own
