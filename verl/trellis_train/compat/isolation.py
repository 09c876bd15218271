"""Keeping jobs of one cluster, and clusters of one machine, apart.

verl and TransferQueue use some fixed names: every job of a Ray cluster would find
the first job's ``TransferQueueController``, and weight-transfer sockets in ``/tmp``
carry Ray's job number, which starts at 1 in every cluster.
"""

import os
from functools import wraps
from typing import Any

from trellis_train.compat.change import EngineMoved, change

#: Of what every process of a job has (``compat.job``).
GROUP = "job"
#: Names the attempt, unique on every machine that it can run on.
RUN_VARIABLE = "TRELLIS_RUN"
#: Literals of TransferQueue and of verl; where another stands, two jobs would share in silence.
SHARED_NAMESPACE = "transfer_queue"
SOCKET_PREFIX = "rl-colocate-zmq-"
_TESTS = "tests/train/compat/test_isolation.py"
_QUEUE: dict[str, Any] = {
    "group": GROUP,
    "kind": "fix",
    "does": "Names the controller of the job's TransferQueue in a namespace of the job's own.",
    "without": "The second job of a cluster writes its samples into the queue of the first.",
    # Gave the queue its fixed namespace.
    "upstream": "https://github.com/Ascend/TransferQueue/pull/115",
    "reads": ("transfer_queue.interface.init", "transfer_queue.interface._init_from_existing"),
    "tests": (
        f"{_TESTS}::test_a_job_looks_for_and_starts_a_transfer_queue_in_its_own_namespace",
        f"{_TESTS}::test_a_transfer_queue_with_another_namespace_is_not_shared_in_silence",
    ),
}
_SOCKETS: dict[str, Any] = {
    "group": GROUP,
    "kind": "fix",
    "does": "Gives the socket by which weights travel the name of the attempt.",
    "without": "Two clusters of a machine send weights through one socket in /tmp.",
    "upstream": "https://github.com/verl-project/verl/issues/6233",
    "tests": (
        f"{_TESTS}::test_a_socket_with_another_name_is_not_shared_in_silence",
        "tests/train/compat/test_changes_are_needed.py::"
        "test_sender_and_receiver_of_weights_agree_on_a_socket_of_the_job",
    ),
}


class _InNamespace:
    """Stands for an object whose ``method`` takes a Ray namespace, and puts the job's own there."""

    def __init__(self, wrapped: Any, method: str, namespace: str) -> None:
        self._wrapped = wrapped
        self._method = method
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._wrapped, name)
        if name != self._method:
            return attribute

        def call(*args: Any, **kwargs: Any) -> Any:
            if (asked := kwargs.get("namespace")) != SHARED_NAMESPACE:
                raise EngineMoved(
                    f"{EngineMoved.code}: {name} is asked for namespace {asked!r}, not {SHARED_NAMESPACE!r}: "
                    "jobs of one cluster would share their queue. Revise trellis_train/compat/isolation.py."
                )
            return attribute(*args, **{**kwargs, "namespace": self._namespace})

        return call


@change(target="transfer_queue.interface.ray", **_QUEUE)
def look_in_own_namespace(original: Any) -> Any:
    """Wrap Ray so that the queue looks for its controller in the job's own namespace."""
    return _InNamespace(original, "get_actor", _own_namespace())


@change(target="transfer_queue.interface.TransferQueueController", **_QUEUE)
def start_in_own_namespace(original: Any) -> Any:
    """Wrap the controller so that the queue starts it in this run's own namespace."""
    return _InNamespace(original, "options", _own_namespace())


def _own_namespace() -> str:
    return f"{SHARED_NAMESPACE}-{os.environ[RUN_VARIABLE]}"


@change(target="verl.workers.rollout.vllm_rollout.vllm_rollout.ServerAdapter.__init__", **_SOCKETS)
def send_by_own_socket(original: Any) -> Any:
    """Use this run's own socket on the sending side."""

    @wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.zmq_handle = _own_socket(self.zmq_handle)

    return __init__


@change(
    target="verl.workers.rollout.vllm_rollout.utils.vLLMColocateWorkerExtension._get_zmq_handle",
    **_SOCKETS,
)
def receive_by_own_socket(original: Any) -> Any:
    """Use this run's own socket on the receiving side."""

    @wraps(original)
    def _get_zmq_handle(self: Any) -> str:
        return _own_socket(original(self))

    return _get_zmq_handle


def _own_socket(handle: str) -> str:
    if SOCKET_PREFIX not in handle:
        raise EngineMoved(
            f"{EngineMoved.code}: the socket {handle} has no {SOCKET_PREFIX} in its name: clusters of one "
            "machine would share it. Revise trellis_train/compat/isolation.py."
        )
    return handle.replace(SOCKET_PREFIX, f"{SOCKET_PREFIX}{os.environ[RUN_VARIABLE]}-", 1)
