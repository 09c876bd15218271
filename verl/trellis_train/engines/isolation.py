"""Keeping jobs of one cluster, and clusters of one machine, apart.

verl and TransferQueue use some fixed names: every job of a Ray cluster would find
the first job's ``TransferQueueController``, and weight-transfer sockets in ``/tmp``
carry Ray's job number, which starts at 1 in every cluster. Loaded in each process
of a job through ``VERL_USE_EXTERNAL_MODULES``.
"""

import os
from functools import cache
from types import ModuleType
from typing import Any

from trellis_train.platform.imports import PatchDoesNotFit, patch_after_import, require

#: Names the attempt, unique on every machine that it can run on.
RUN_VARIABLE = "TRELLIS_RUN"
MODULE_NAME = __name__
QUEUE = "transfer_queue.interface"
SENDER = "verl.workers.rollout.vllm_rollout.vllm_rollout"
RECEIVER = "verl.workers.rollout.vllm_rollout.utils"
SHARED_NAMESPACE = "transfer_queue"
SOCKET_PREFIX = "rl-colocate-zmq-"


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
                raise PatchDoesNotFit(f"{name} is asked for namespace {asked!r}, not {SHARED_NAMESPACE!r}")
            return attribute(*args, **{**kwargs, "namespace": self._namespace})

        return call


def _isolate_queue(module: ModuleType) -> None:
    """Give the job a TransferQueue of its own: name its controller in the job's namespace."""
    names = ("ray", "TransferQueueController")
    require(module, *names)
    namespace = f"{SHARED_NAMESPACE}-{os.environ[RUN_VARIABLE]}"
    for name, method in zip(names, ("get_actor", "options"), strict=True):
        setattr(module, name, _InNamespace(getattr(module, name), method, namespace))


def _own_socket(handle: str) -> str:
    if SOCKET_PREFIX not in handle:
        raise PatchDoesNotFit(f"the socket {handle} has no {SOCKET_PREFIX} in its name")
    return handle.replace(SOCKET_PREFIX, f"{SOCKET_PREFIX}{os.environ[RUN_VARIABLE]}-", 1)


def _isolate_sender(module: ModuleType) -> None:
    require(module, "ServerAdapter")
    adapter = module.ServerAdapter
    original = adapter.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.zmq_handle = _own_socket(self.zmq_handle)

    adapter.__init__ = __init__


def _isolate_receiver(module: ModuleType) -> None:
    require(module, "vLLMColocateWorkerExtension")
    extension = module.vLLMColocateWorkerExtension
    require(extension, "_get_zmq_handle")
    original = extension._get_zmq_handle

    def _get_zmq_handle(self: Any) -> str:
        return _own_socket(original(self))

    extension._get_zmq_handle = _get_zmq_handle


@cache
def isolate() -> None:
    """Install the patches, once; they take effect when the modules are imported."""
    patch_after_import(QUEUE, _isolate_queue)
    patch_after_import(SENDER, _isolate_sender)
    patch_after_import(RECEIVER, _isolate_receiver)


if os.environ.get(RUN_VARIABLE):
    isolate()
