"""The estimate against peaks that were measured: PSS of all processes of a run, sampled every three seconds.

Measured on two cores (AVX2) with SmolLM2-135M-Instruct in single precision, with `trellis jobs submit` and
/proc/PID/smaps_rollup.
"""

from collections.abc import Callable
from typing import Any

import pytest
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.estimate import estimate_memory

GIB = 1024**3
GRPO = {
    "batch_size": 8,
    "group_size": 4,
    "mini_batch_size": 4,
    "micro_batch_size": 8,
    "max_prompt_length": 128,
    "max_response_length": 24,
}
SFT = {"batch_size": 8, "max_length": 192, "max_tokens_per_gpu": 768}
#: Recipe, parameters and the peak in GiB.
MEASURED = [
    ("sft", SFT, 4.57),
    ("grpo", GRPO, 8.04),
    ("grpo", {**GRPO, "mini_batch_size": 8, "micro_batch_size": 32, "old_log_probs": "sampler"}, 10.11),
]


@pytest.mark.parametrize(("recipe", "params", "peak"), MEASURED)
def test_the_estimate_is_within_a_fifth_of_the_measured_peak(
    recipe: str,
    params: dict[str, Any],
    peak: float,
    request_for: Callable[..., ComposeRequest],
    smollm: Architecture,
) -> None:
    composed = compose(request_for(recipe=recipe, architecture=smollm, params=params))

    found = estimate_memory(
        smollm,
        engine=composed.engine,
        recipe=recipe,
        config=composed.config,
        platform="cpu",
        gpus=1,
        env=composed.env,
    )

    assert composed.errors == []
    assert abs(found.peak_bytes / GIB - peak) <= 0.2 * peak


def test_the_prompt_of_a_group_is_counted_once_in_a_pass_on_a_cpu(
    request_for: Callable[..., ComposeRequest], smollm: Architecture
) -> None:
    def activations(**changes: Any) -> int:
        composed = compose(request_for(architecture=smollm, params={**GRPO, **changes}))
        found = estimate_memory(
            smollm,
            engine=composed.engine,
            recipe="grpo",
            config=composed.config,
            platform="cpu",
            gpus=1,
            env=composed.env,
        )
        update = next(phase for phase in found.phases if phase.name == "update")
        return next(part.bytes for part in update.parts if part.name == "activations")

    a_token = activations(max_prompt_length=129) - activations(max_prompt_length=128)
    a_response_token = activations(max_response_length=25) - activations(max_response_length=24)

    assert a_response_token == 4 * a_token  # eight rows are two groups of four
