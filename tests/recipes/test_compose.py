"""Composition against the schema of the installed verl."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.checks import preference
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.platform_defaults import engine_defaults
from trellis_recipes.schemas import schema_of
from trellis_testing.recipes import engines_own_view

Build = Callable[..., ComposeRequest]
BUCKET = "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"
CASES = [
    pytest.param(recipe.id, preset.id, preset.gpus, platform, id=f"{recipe.id}-{preset.id}-{platform}")
    for recipe in list_recipes()
    for preset in recipe.presets
    for platform in ("cpu", "cuda")
    # A base in fewer bits needs a GPU.
    if platform == "cuda" or preset.params.get("quantization", "none") == "none"
]
#: Hydra takes most of a second for each: every preset where it is meant for, and of each recipe one
#: for a CPU and one for GPUs in the fast set.
QUICK_PRESETS = {"cpu-small", "gpu-24gb", "development"}
VERL_CASES = [
    pytest.param(*case.values, id=case.id, marks=[] if case.values[1] in QUICK_PRESETS else pytest.mark.slow)
    for case in CASES
    if get_recipe(str(case.values[0])).engine in (Engine.VERL_PPO, Engine.VERL_SFT)
    and str(case.values[1]).startswith("cpu-") == (case.values[3] == "cpu")
]


@pytest.mark.parametrize(("recipe", "preset", "gpus", "platform"), CASES)
def test_every_preset_composes_without_errors(
    recipe: str,
    preset: str,
    gpus: int,
    platform: str,
    request_for: Build,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema_of(get_recipe(recipe))  # looks for the engine's files in the same way
    monkeypatch.setattr(preference.importlib.util, "find_spec", lambda _name: object())

    composition = compose(request_for(recipe=recipe, preset=preset, gpus=gpus, platform=platform))

    assert composition.errors == []


@pytest.mark.parametrize(("recipe", "preset", "gpus", "platform"), VERL_CASES)
def test_the_shown_configuration_is_what_verl_reads(
    recipe: str, preset: str, gpus: int, platform: str, request_for: Build
) -> None:
    composition = compose(
        request_for(
            recipe=recipe,
            preset=preset,
            gpus=gpus,
            platform=platform,
            model_path="/data/it's here/model, v2",
        )
    )

    assert composition.config == engines_own_view(composition)


def test_settings_below_an_empty_mapping_reach_verl(request_for: Build) -> None:
    overrides = {
        "actor_rollout_ref.rollout.engine_kwargs.vllm": {
            "max_num_seqs": 4,
            "limit_mm_per_prompt": {"image": 0},
        }
    }

    composition = compose(request_for(overrides=overrides))

    assert composition.errors == []
    assert composition.config == engines_own_view(composition)
    assert composition.config["actor_rollout_ref"]["rollout"]["engine_kwargs"]["vllm"]["max_num_seqs"] == 4


def test_a_parameter_reaches_all_of_its_keys(request_for: Build) -> None:
    composition = compose(request_for(params={"clip_ratio": 0.3, "group_size": 4}))

    actor = composition.config["actor_rollout_ref"]["actor"]
    assert (actor["clip_ratio_low"], actor["clip_ratio_high"]) == (0.3, 0.3)
    assert composition.config["actor_rollout_ref"]["rollout"]["n"] == 4


def test_rows_held_out_are_validated_on(request_for: Build) -> None:
    composition = compose(request_for(params={"validation_rows": 8}))

    assert composition.config["data"]["val_files"].endswith("prepared/validation.parquet")
    assert composition.config["trainer"]["test_freq"] == 10


def test_without_validation_rows_nothing_is_validated(request_for: Build) -> None:
    composition = compose(request_for(params={"validation_rows": 0}))

    trainer = composition.config["trainer"]
    assert (trainer["test_freq"], trainer["val_before_train"]) == (-1, False)


def test_resuming_names_the_checkpoint(request_for: Build) -> None:
    composition = compose(request_for(resume_from="/c/global_step_5"))

    trainer = composition.config["trainer"]
    assert (trainer["resume_mode"], trainer["resume_from_path"]) == ("resume_path", "/c/global_step_5")


@pytest.mark.parametrize("recipe", ["grpo", "sft"])
def test_a_full_checkpoint_can_be_used_as_a_model(recipe: str, request_for: Build) -> None:
    composition = compose(request_for(recipe=recipe))

    assert any("save_contents" in line and "hf_model" in line for line in composition.engine_overrides)


def test_cpu_settings_stay_off_gpus(request_for: Build) -> None:
    composition = compose(request_for(platform="cuda"))

    assert not {"VERL_PLATFORM", "OMP_WAIT_POLICY"} & set(composition.env)
    assert composition.config["actor_rollout_ref"]["rollout"]["dtype"] == "bfloat16"


@pytest.mark.parametrize("recipe", ["grpo", "sft"])
def test_idle_threads_leave_the_cores_to_others_on_a_cpu(recipe: str, request_for: Build) -> None:
    assert compose(request_for(recipe=recipe)).env["OMP_WAIT_POLICY"] == "PASSIVE"


def test_blocks_of_the_cache_are_short_on_a_cpu_and_a_persons_to_set(request_for: Build) -> None:
    key = "actor_rollout_ref.rollout.engine_kwargs.vllm"

    ours, theirs, on_a_gpu = (
        compose(request_for(**chosen)).config["actor_rollout_ref"]["rollout"]["engine_kwargs"]["vllm"]
        for chosen in ({}, {"overrides": {f"{key}.block_size": 64}}, {"platform": "cuda"})
    )

    assert (ours["block_size"], theirs["block_size"]) == (32, 64)
    assert "block_size" not in on_a_gpu


def test_composing_again_takes_milliseconds(request_for: Build) -> None:
    for engine_recipe in ("grpo", "sft"):
        compose(request_for(recipe=engine_recipe))
    durations = []

    for _ in range(11):
        start = time.process_time()
        compose(request_for())
        durations.append(time.process_time() - start)

    assert sorted(durations)[5] < 0.020  # of the processor, whatever else the machine does


def test_composing_imports_neither_torch_nor_verl() -> None:
    program = (
        "import sys\n"
        "from trellis_recipes.compose import ComposeRequest, compose\n"
        "result = compose(ComposeRequest(recipe='grpo', platform='cpu', gpus=1, model_path='m',"
        " train_path='/t', checkpoint_dir='/c', seed=0))\n"
        "assert not result.errors\n"
        "print([name for name in ('torch', 'verl', 'ray', 'vllm', 'transformers') if name in sys.modules])\n"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == "[]"


def test_the_command_replays_with_bare_verl(request_for: Build) -> None:
    composition = compose(request_for(model_path="/my models/m"))

    assert "python -m verl.trainer.main_ppo" in composition.command
    assert "VERL_PLATFORM=cpu" in composition.command
    assert composition.engine is Engine.VERL_PPO
    shell = subprocess.run(
        ["bash", "-c", composition.command.replace("python -m", "printf '%s\\n' -m")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(composition.engine_overrides) <= set(shell.stdout.splitlines())


def test_what_corrects_for_the_sampler_reaches_the_engine(request_for: Build) -> None:
    plain = compose(request_for()).config["algorithm"]["rollout_correction"]
    corrected = compose(request_for(params={"importance_correction": "sequence", "importance_limit": 4.0}))
    taken = compose(request_for(params={"old_log_probs": "sampler"})).config

    assert (plain["rollout_is"], plain["bypass_mode"]) == (None, False)
    correction = corrected.config["algorithm"]["rollout_correction"]
    assert (correction["rollout_is"], correction["rollout_is_threshold"]) == ("sequence", 4.0)
    assert taken["algorithm"]["rollout_correction"]["bypass_mode"]
    assert taken["actor_rollout_ref"]["actor"]["calculate_entropy"]


@pytest.mark.parametrize(
    ("largest_weight", "expected"),
    [(None, 64), (259 * 128, 64), (49_152 * 576, 108), (64 * 2**18, 64), (64 * 2**18 + 1, 65)],
)
def test_the_weight_sync_bucket_on_a_cpu_holds_the_largest_tensor(
    largest_weight: int | None, expected: int
) -> None:
    settings = engine_defaults(Engine.VERL_PPO, "cpu", largest_weight)

    assert settings[BUCKET] == expected


def test_the_weight_sync_bucket_follows_the_model(request_for: Build, smollm: Architecture) -> None:
    composition = compose(request_for(architecture=smollm))

    engine = composition.config["actor_rollout_ref"]["rollout"]["checkpoint_engine"]
    assert engine["update_weights_bucket_megabytes"] == 108


def test_a_bucket_that_a_person_sets_stays(request_for: Build, smollm: Architecture) -> None:
    composition = compose(request_for(architecture=smollm, overrides={BUCKET: 512}))

    engine = composition.config["actor_rollout_ref"]["rollout"]["checkpoint_engine"]
    assert engine["update_weights_bucket_megabytes"] == 512


@pytest.mark.parametrize(("platform", "is_merged"), [("cpu", True), ("cuda", False)])
def test_an_adapter_goes_to_a_sampler_on_a_cpu_as_part_of_the_weights(
    platform: str, is_merged: bool, request_for: Build
) -> None:
    request = request_for(recipe="grpo", platform=platform, params={"lora_rank": 8})

    assert compose(request).config["actor_rollout_ref"]["model"]["lora"]["merge"] is is_merged
