"""The same job with the same seed starts from the same weights, those drawn at random included.

verl draws a critic's value head and a LoRA adapter from a generator that nobody seeded
(``fsdp_config.seed`` counts under full determinism only). Loaded in each process of a job
through ``VERL_USE_EXTERNAL_MODULES``.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any

from trellis_train.engines.isolation import RUN_VARIABLE
from trellis_train.platform.imports import patch_after_import, require

MODULE_NAME = __name__
ENGINE = "verl.workers.engine.fsdp.transformer_impl"
#: Methods of verl's FSDP engine in which weights are drawn.
DRAWING = ("_build_module", "_build_lora_module")


def _seed(module: ModuleType) -> None:
    require(module, "FSDPEngine")
    require(module.FSDPEngine, *DRAWING)
    for name in DRAWING:
        setattr(module.FSDPEngine, name, seeded(getattr(module.FSDPEngine, name)))


def seeded(build: Callable[..., Any]) -> Callable[..., Any]:
    """``build`` with the generator set to the engine's seed; afterwards it is as it was."""

    @wraps(build)
    def build_seeded(self: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.engine_config.seed)
            return build(self, *args, **kwargs)

    return build_seeded


@cache
def seed_initial_weights() -> None:
    """Install the patch, once; it takes effect when verl's engine is imported."""
    patch_after_import(ENGINE, _seed)


if os.environ.get(RUN_VARIABLE):
    seed_initial_weights()
