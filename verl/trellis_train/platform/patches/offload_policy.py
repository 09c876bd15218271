"""The reference model and ``offload_policy=True`` ask for pinned memory, which needs an accelerator."""

from types import ModuleType
from typing import Any

from trellis_train.platform.imports import require

MODULE = "verl.workers.engine.fsdp.transformer_impl"
CLASS = "CPUOffloadPolicy"


def patch(module: ModuleType) -> None:
    """Build ``CPUOffloadPolicy`` without pinned memory, whatever the caller asks."""
    require(module, CLASS)
    original = getattr(module, CLASS)

    def unpinned_policy(pin_memory: bool = True) -> Any:  # noqa: ARG001 (the original's signature)
        return original(pin_memory=False)

    setattr(module, CLASS, unpinned_policy)
