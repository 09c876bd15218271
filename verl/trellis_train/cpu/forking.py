"""A run's processes forked from one that has imported what they need, where all are on one machine.

An engine on Ray is seven processes, and each imports torch, vLLM and verl: 130 s of a core before the first
step (docs/adr/0022-processes-forked-from-one.md).
"""

import os
from urllib.parse import urlsplit

from trellis_train.cpu.forkserver import server
from trellis_train.platform.activation import is_cpu_platform

_ADDRESS_VARIABLE = "RAY_ADDRESS"
#: What trainers, rollout engines and agent loops import, by the modules that bring the rest.
MODULES = ("torch", "transformers")
MODULES_WITH_RAY = (
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",
    "trellis_train.rollout.server",
    "trellis_train.rollout.worker",
    "verl.trainer.main_ppo",
    "verl.workers.engine_workers",
    "ray._private.workers.default_worker",
)


def start_fork_server() -> server.ForkServer | None:
    """Start the server of the run's processes; None where each imports for itself."""
    if not is_cpu_platform() or not _is_cluster_here():
        return None
    return server.start(MODULES, MODULES_WITH_RAY)


def _is_cluster_here() -> bool:
    """Tell whether the cluster is this machine's alone: our own, or one only reachable from here."""
    address = os.environ.get(_ADDRESS_VARIABLE)
    return not address or urlsplit(f"//{address}").hostname in ("127.0.0.1", "::1", "localhost")
