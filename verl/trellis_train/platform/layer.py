"""What an optional layer may do to a run, and whether there is one: that of CPUs makes runs faster.

Nothing else imports a layer. Without one everything runs as the engines have it.
"""

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from trellis_train.platform.activation import is_cpu_platform

#: ``0`` leaves the layer out, of trainers, rollout engines and drivers alike.
SWITCH_VARIABLE = "TRELLIS_CPU_ACCELERATION"
#: Module and class of the layer for CPUs.
_CPU_LAYER = ("trellis_train.cpu.layer", "CpuLayer")


class Layer:
    """Does nothing; a layer overrides what it does."""

    def change_trainer(self) -> None:
        """Change verl and torch in this process, as verl is imported."""

    def change_models(self) -> None:
        """Change how models of transformers compute in this process, before one is trained on packed rows."""

    def change_rollout_engine(self) -> None:
        """Change vLLM in this process, as it loads its plugins."""

    def change_driver(self) -> None:
        """Change verl's trainer in the driver of a run, before it is made."""

    def environment(self) -> Mapping[str, str]:
        """Return variables of all processes of a run."""
        return {}

    def prepare(self) -> None:
        """Begin what takes long, before the engines are imported."""

    def interpreter(self) -> str | None:
        """Return the shell command with which Ray starts the run's processes; None for Python itself."""
        return None

    def start_servers(self, config: Any) -> None:
        """Start rollout servers ahead of verl, as soon as the cluster is there."""

    def start_workers(self) -> None:
        """Start agent-loop workers ahead of verl, when all is imported here."""

    def server_class(self, cls: Any) -> Any:
        """Return the actor class with which verl starts rollout servers: ``cls`` or a replacement."""
        return cls

    def take_workers(self, count: int) -> list[Any] | None:
        """Take started agent-loop workers that await ``construct``, or return None to let verl start them."""
        del count
        return None


@cache
def load_layer() -> Layer:
    """Return this process's layer, always the same object."""
    if not is_cpu_platform() or os.environ.get(SWITCH_VARIABLE) == "0":
        return Layer()
    module, name = _CPU_LAYER
    found: Layer = getattr(import_module(module), name)()
    return found
