"""Computes the largest model that each preset has memory for: ``preset_sizes.yaml``, and titles from that."""

from collections.abc import Iterator
from typing import Any

import yaml
from trellis_contracts.recipe import Preset, Recipe

from trellis_recipes.agents import RESOURCES
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.memory import formulas
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.assumptions import TIGHT
from trellis_recipes.memory.estimate import Machine, estimate_memory
from trellis_recipes.memory.plan import read_plan
from trellis_recipes.memory.reference_models import reference_models
from trellis_recipes.preset_titles import MODELS

HEADER = """# The largest model that each preset has memory for, by the estimate: sizes of Qwen2.5.
# Made by `python -m trellis_tools.documents preset-sizes --write`; titles of presets are made from it.
"""
#: What drivers report for cards that are sold with so many GB.
GPU_BYTES = {gb: int(gb * 1024**3 * 0.995) for gb in (16, 24, 48, 80)}
#: Memory of the GPUs that a preset is named after.
PRESET_GB = {"gpu-24gb": 24, "gpu-80gb": 80, "gpu-8x80gb": 80}
#: The adapter of the second size in the titles of presets that train all weights.
_ADAPTER = {"lora_rank": 32, "lora_alpha": 64}


def compose_preset(
    recipe: Recipe,
    preset: Preset,
    params: dict[str, Any],
    model: Architecture | None = None,
    gpu_bytes: int | None = None,
) -> Composition:
    """Compose the configuration of a preset as a job gets it, with batch sizes for the model."""
    resources = {
        parameter.name: f"{parameter.type}_1"
        for parameter in recipe.parameters
        if parameter.type in RESOURCES
    }
    return compose(
        ComposeRequest(
            recipe=recipe.id,
            preset=preset.id,
            params={**resources, **params},
            platform="cuda",
            gpus=preset.gpus,
            model_path="/model",
            architecture=model,
            device_memory_bytes=gpu_bytes,
            train_path="/prepared/train.parquet",
            checkpoint_dir="/checkpoints",
            seed=1,
        )
    )


def fits(recipe: Recipe, preset: Preset, params: dict[str, Any], model: Architecture, gpu_bytes: int) -> bool:
    """Tell whether the run fits in its GPUs and its rollout engine has room for one sequence."""
    composed = compose_preset(recipe, preset, params, model, gpu_bytes)
    found = estimate_memory(
        model,
        engine=composed.engine,
        recipe=recipe.id,
        config=composed.config,
        platform="cuda",
        gpus=preset.gpus,
        env=composed.env,
        machine=Machine(gpu_bytes),
    )
    return found.per_gpu_bytes <= TIGHT * gpu_bytes and _has_cache(recipe, preset, composed, model, gpu_bytes)


def _has_cache(
    recipe: Recipe, preset: Preset, composed: Composition, model: Architecture, gpu_bytes: int
) -> bool:
    """Tell whether vLLM's GPU share holds its weights and the longest sequence: else it cannot start."""
    plan = read_plan(
        composed.engine,
        composed.config,
        recipe=recipe.id,
        platform="cuda",
        gpus=preset.gpus,
        env=composed.env,
    )
    rollout_engine = plan.rollout_engine
    if rollout_engine is None or rollout_engine.share is None:
        return True
    cache = rollout_engine.max_length * formulas.kv_bytes_per_token(model, rollout_engine.element_bytes)
    needed = (model.parameters * rollout_engine.element_bytes + cache) // rollout_engine.tensor_parallel
    return needed <= rollout_engine.share * gpu_bytes


def find_largest(recipe: Recipe, preset: Preset, params: dict[str, Any]) -> str | None:
    """Return the largest reference model that fits a preset's machine, or None."""
    gpu_bytes = GPU_BYTES[PRESET_GB[preset.id]]
    able = [
        name for name, model in reference_models().items() if fits(recipe, preset, params, model, gpu_bytes)
    ]
    return able[-1] if able else None


def find_smallest_gpu(recipe: Recipe, preset: Preset, model: str) -> int | None:
    """Return the GB of the smallest GPU that fits a preset for a model size; None if none is large enough."""
    shape = reference_models()[model]
    return next((gb for gb, size in GPU_BYTES.items() if fits(recipe, preset, {}, shape, size)), None)


def measure(recipe: Recipe) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the sizes for the title of each preset; skip presets that are not for GPUs."""
    for preset in recipe.presets:
        if preset.id in MODELS:
            yield preset.id, {"gpu_gb": find_smallest_gpu(recipe, preset, MODELS[preset.id])}
        elif preset.id in PRESET_GB:
            sizes = {"largest": find_largest(recipe, preset, {})}
            if compose_preset(recipe, preset, {}).params.get("lora_rank") == 0:
                sizes["largest_with_lora"] = find_largest(recipe, preset, _ADAPTER)
            yield preset.id, sizes


def render_sizes(recipes: list[Recipe]) -> str:
    """Return the text of ``preset_sizes.yaml``."""
    return HEADER + yaml.safe_dump({recipe.id: dict(measure(recipe)) for recipe in recipes}, sort_keys=False)
