"""What presets promise: memory for the models in their titles, and no checkpoints without end."""

from collections.abc import Iterator

import pytest
from trellis_contracts.recipe import Preset, Recipe
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.compose import default_preset
from trellis_recipes.memory.reference_models import reference_models
from trellis_recipes.preset_sizes import GPU_BYTES, PRESET_GB, compose_preset, fits, render_sizes
from trellis_recipes.preset_titles import MODELS, SIZES, read_sizes

GIB = 1024**3
GPU_PRESETS = [
    pytest.param(recipe, preset, id=f"{recipe.id}-{preset.id}")
    for recipe in list_recipes()
    for preset in recipe.presets
    if preset.id in PRESET_GB or preset.id in MODELS
]


def promises(recipe: Recipe, preset: Preset) -> Iterator[tuple[str, dict[str, int], int]]:
    """The models that a title names, each with the parameters it is said of and the GPU's memory."""
    sizes = read_sizes()[recipe.id][preset.id]
    if preset.id in MODELS:
        yield MODELS[preset.id], {}, GPU_BYTES[sizes["gpu_gb"]]
        return
    yield sizes["largest"], {}, GPU_BYTES[PRESET_GB[preset.id]]
    if "largest_with_lora" in sizes:
        yield sizes["largest_with_lora"], {"lora_rank": 32, "lora_alpha": 64}, GPU_BYTES[PRESET_GB[preset.id]]


@pytest.mark.parametrize(("recipe", "preset"), GPU_PRESETS)
def test_a_gpu_has_memory_for_the_largest_model_that_a_title_names(recipe: Recipe, preset: Preset) -> None:
    for model, params, gpu_bytes in promises(recipe, preset):
        assert fits(recipe, preset, params, reference_models()[model], gpu_bytes), (model, params)
        assert model in preset.title.en
        assert model in preset.title.zh


def test_every_preset_for_gpus_names_a_model_that_is_checked() -> None:
    checked = {(case.values[0].id, case.values[1].id) for case in GPU_PRESETS}
    every = {(recipe.id, preset.id) for recipe in list_recipes() for preset in recipe.presets}

    assert {preset for _, preset in every - checked} == {"cpu-tiny", "cpu-small"}


@pytest.mark.slow
def test_the_sizes_are_those_that_the_estimate_gives() -> None:
    assert SIZES.read_text() == render_sizes(list_recipes())


@pytest.mark.parametrize(("recipe", "preset"), GPU_PRESETS)
def test_a_run_on_a_gpu_does_not_keep_every_checkpoint(recipe: Recipe, preset: Preset) -> None:
    assert preset.params["keep_checkpoints"] == 2


@pytest.mark.parametrize(("recipe", "preset"), GPU_PRESETS)
def test_all_weights_are_trained_more_gently_than_an_adapter(recipe: Recipe, preset: Preset) -> None:
    params = compose_preset(recipe, preset, {}).params
    limit = 1e-6 if recipe.engine == "verl-ppo" else 2e-5

    if not params.get("lora_rank"):
        assert params["learning_rate"] <= limit


@pytest.mark.parametrize(
    ("gpus", "memory", "preset"),
    [
        (1, 80 * GIB, "gpu-80gb"),
        (1, 81_559 * 1024**2, "gpu-80gb"),
        (1, 141 * GIB, "gpu-80gb"),
        (4, 80 * GIB, "gpu-80gb"),
        (8, 80 * GIB, "gpu-8x80gb"),
        (1, 24 * GIB, "gpu-24gb"),
        (1, 48 * GIB, "gpu-24gb"),
        (8, 24 * GIB, "gpu-24gb"),
        (1, None, "gpu-24gb"),
        (8, None, "gpu-8x80gb"),
    ],
)
def test_the_preset_of_a_job_follows_the_memory_of_its_gpus(
    gpus: int, memory: int | None, preset: str
) -> None:
    chosen = default_preset(get_recipe("grpo"), "cuda", gpus, device_memory_bytes=memory)

    assert chosen is not None
    assert chosen.id == preset


def test_a_base_under_an_adapter_is_held_in_bfloat16_on_a_gpu() -> None:
    for recipe, key in (("sft", ("engine",)), ("grpo", ("actor_rollout_ref", "actor", "fsdp_config"))):
        (preset,) = [each for each in get_recipe(recipe).presets if each.id == "gpu-24gb"]
        adapter = compose_preset(get_recipe(recipe), preset, {"lora_rank": 8}).config
        full = compose_preset(get_recipe(recipe), preset, {"lora_rank": 0}).config
        for name in key:
            adapter, full = adapter[name], full[name]

        assert adapter["model_dtype"] == "bfloat16"
        assert full["model_dtype"] != "bfloat16"
