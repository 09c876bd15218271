"""The estimate against peaks that were measured: proportional set size of all processes of a run.

Measured on two cores (AVX2) with SmolLM2-135M-Instruct in single precision; those with the preset `cpu-small`
by `./init.sh bench memory --model smollm2-135m-instruct`, also with AVX-512.
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
ADAPTER = {"lora_rank": 16, "lora_alpha": 32}
BENCH = {"batch_size": 8, "total_steps": 2}
ROWS = {**BENCH, "max_length": 96}
PROMPTS = {**BENCH, "group_size": 4, "max_prompt_length": 96, "max_response_length": 24}
#: Recipe, preset, parameters and the peaks in GiB: with AVX2 and, where it was measured, with AVX-512.
MEASURED = [
    ("sft", None, SFT, (4.57,)),
    ("grpo", None, GRPO, (8.04,)),
    (
        "grpo",
        None,
        {**GRPO, "mini_batch_size": 8, "micro_batch_size": 32, "old_log_probs": "sampler"},
        (10.11,),
    ),
    ("sft", "cpu-small", ROWS, (4.77, 4.30)),
    ("sft", "cpu-small", {**ROWS, **ADAPTER}, (3.61, 3.51)),
    ("dpo", "cpu-small", ROWS, (6.40, 6.38)),
    ("dpo", "cpu-small", {**ROWS, **ADAPTER}, (6.07, 5.14)),
    ("grpo", "cpu-small", PROMPTS, (8.42, 9.60)),
    ("grpo", "cpu-small", {**PROMPTS, **ADAPTER}, (7.62, 7.33)),
]


@pytest.mark.parametrize(("recipe", "preset", "params", "peaks"), MEASURED)
def test_the_estimate_is_within_a_fifth_of_the_measured_peak(
    recipe: str,
    preset: str | None,
    params: dict[str, Any],
    peaks: tuple[float, ...],
    request_for: Callable[..., ComposeRequest],
    smollm: Architecture,
) -> None:
    composed = compose(request_for(recipe=recipe, preset=preset, architecture=smollm, params=params))

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
    estimate = found.peak_bytes / GIB
    assert [peak for peak in peaks if abs(estimate - peak) > 0.2 * peak] == []


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
