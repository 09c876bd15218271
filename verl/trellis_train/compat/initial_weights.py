"""The same job with the same seed starts from the same weights, those drawn at random included.

verl draws a critic's value head and a LoRA adapter from a generator that nobody seeded
(``fsdp_config.seed`` counts under full determinism only).
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from trellis_train.compat.change import change
from trellis_train.compat.isolation import GROUP

ENGINE = "verl.workers.engine.fsdp.transformer_impl"
#: Methods of verl's FSDP engine in which weights are drawn.
DRAWING = ("_build_module", "_build_lora_module")
_TESTS = "tests/train/compat/test_initial_weights.py"
_DRAWN: dict[str, Any] = {
    "group": GROUP,
    "kind": "fix",
    "does": "Draws new weights from the seed of the job.",
    "without": "The same job with the same seed starts from other weights each time.",
    "tests": (
        f"{_TESTS}::test_the_seed_decides_what_is_drawn",
        f"{_TESTS}::test_the_engine_draws_weights_where_we_seed",
    ),
}


@change(target=f"{ENGINE}.FSDPEngine._build_module", **_DRAWN)
@change(target=f"{ENGINE}.FSDPEngine._build_lora_module", **_DRAWN)
def seeded(build: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``build`` to run with the generator set to the engine's seed; the state is restored afterwards."""

    @wraps(build)
    def build_seeded(self: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.engine_config.seed)
            return build(self, *args, **kwargs)

    return build_seeded
