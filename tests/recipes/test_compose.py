"""Composition against the schema of the installed verl."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import OmegaConf
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.schema import ROOT_CONFIGS, verl_folder

Build = Callable[..., ComposeRequest]
CASES = [
    pytest.param(recipe.id, preset.id, preset.gpus, platform, id=f"{recipe.id}-{preset.id}-{platform}")
    for recipe in list_recipes()
    for preset in recipe.presets
    for platform in ("cpu", "cuda")
]
#: Hydra takes a third of a second for each: every preset where it is meant for.
VERL_CASES = [
    case
    for case in CASES
    if get_recipe(str(case.values[0])).engine is not Engine.TRL
    and (case.values[1] == "cpu-tiny") == (case.values[3] == "cpu")
]


def engines_own_view(composition: Composition) -> dict:
    """What verl itself would read, given the overrides."""
    folder = str(verl_folder() / "trainer" / "config")
    with initialize_config_dir(config_dir=folder, version_base=None):
        config = hydra_compose(ROOT_CONFIGS[composition.engine], overrides=composition.engine_overrides)
    return OmegaConf.to_container(config, resolve=True)


def codes(issues: list) -> list[str]:
    return [issue.code for issue in issues]


@pytest.mark.parametrize(("recipe", "preset", "gpus", "platform"), CASES)
def test_every_preset_composes_without_errors(
    recipe: str, preset: str, gpus: int, platform: str, request_for: Build
) -> None:
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
    overrides = {"actor_rollout_ref.rollout.engine_kwargs.vllm": {"max_num_seqs": 4, "a": {"b": "x y"}}}

    composition = compose(request_for(overrides=overrides))

    assert composition.errors == []
    assert composition.config == engines_own_view(composition)
    assert composition.config["actor_rollout_ref"]["rollout"]["engine_kwargs"]["vllm"]["a"]["b"] == "x y"


def test_a_knob_reaches_all_of_its_keys(request_for: Build) -> None:
    composition = compose(request_for(params={"clip_ratio": 0.3, "group_size": 4}))

    actor = composition.config["actor_rollout_ref"]["actor"]
    assert (actor["clip_ratio_low"], actor["clip_ratio_high"]) == (0.3, 0.3)
    assert composition.config["actor_rollout_ref"]["rollout"]["n"] == 4


def test_an_own_setting_wins_over_its_knob_and_says_so(request_for: Build) -> None:
    composition = compose(request_for(overrides={"actor_rollout_ref.rollout.n": 4}))

    assert composition.config["actor_rollout_ref"]["rollout"]["n"] == 4
    assert codes(composition.warnings) == ["shadows_knob"]


@pytest.mark.parametrize(
    ("key", "code", "suggestion"),
    [
        ("actor_rollout_ref.actor.lr", "unknown_engine_key", "actor_rollout_ref.actor.optim.lr"),
        (
            "actor_rollout_ref.rollout.temprature",
            "unknown_engine_key",
            "actor_rollout_ref.rollout.temperature",
        ),
        (
            "actor_rollout_ref.actor.optim.learning_rate",
            "unknown_engine_key",
            "actor_rollout_ref.actor.optim.lr",
        ),
        ("trainer.num_train_epochs", "unknown_engine_key", "trainer.total_epochs"),
        ("custom_reward_function.path", "ineffective_key", "reward.custom_reward_function.path"),
        ("reward_model.enable", "ineffective_key", "reward.reward_model.enable"),
        ("reward_model.reward_manager", "ineffective_key", "reward.reward_manager.name"),
        ("trainer.default_local_dir", "reserved_key", None),
        ("ray_kwargs.ray_init.num_cpus", "reserved_key", None),
    ],
)
def test_a_wrong_key_is_named_with_the_right_one(
    key: str, code: str, suggestion: str | None, request_for: Build
) -> None:
    composition = compose(request_for(overrides={key: 1}))

    (issue,) = composition.errors
    assert (issue.code, issue.field, issue.suggestion) == (code, f"overrides.{key}", suggestion)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("actor_rollout_ref.actor.profiler.finish_hook_cmd", "rm -rf /"),
        ("actor_rollout_ref.model.external_lib", "antigravity"),
        ("actor_rollout_ref.model.trust_remote_code", True),
        ("actor_rollout_ref.rollout.agent.agent_loop_manager_class", "os.system"),
        ("actor_rollout_ref.rollout.engine_kwargs.vllm", {"worker_cls": "os.system"}),
        ("critic.model.path", "/etc"),
        ("data.cache_dir", "/etc"),
        ("data.custom_cls.path", "pkg://os"),
        ("global_profiler.save_path", "/etc"),
    ],
)
def test_no_setting_reads_files_or_runs_code_of_the_persons_choice(
    key: str, value: object, request_for: Build
) -> None:
    composition = compose(request_for(overrides={key: value}))

    assert codes(composition.errors) == ["reserved_key"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("actor_rollout_ref.model.trust_remote_code", False),
        ("actor_rollout_ref.model.target_modules", "all-linear"),
        ("actor_rollout_ref.rollout.engine_kwargs.vllm", {"max_num_seqs": 8}),
    ],
)
def test_settings_with_similar_names_stay_free(key: str, value: object, request_for: Build) -> None:
    assert compose(request_for(overrides={key: value})).errors == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("algorithm.gamma", "high"),
        ("actor_rollout_ref.rollout.n", 2.5),
        ("actor_rollout_ref.rollout.enforce_eager", 1),
        ("actor_rollout_ref.rollout.enable_sleep_mode", "no"),
        ("actor_rollout_ref.rollout", 3),
        ("trainer.balance_batch", None),
    ],
)
def test_a_value_of_the_wrong_type_is_an_error(key: str, value: object, request_for: Build) -> None:
    composition = compose(request_for(overrides={key: value}))

    assert codes(composition.errors) == ["wrong_type"]


@pytest.mark.parametrize(
    "choices",
    [
        {"overrides": {"data.truncation": "${oc.env:HOME}"}},
        {"params": {"reward": "regex", "reward_pattern": "${oc.env:HOME}"}},
        {"model_path": "${oc.env:HOME}"},
    ],
)
def test_an_interpolation_cannot_read_the_environment(choices: dict, request_for: Build) -> None:
    composition = compose(request_for(**choices))

    assert codes(composition.errors) == ["invalid_value"]
    assert "HOME" not in " ".join(composition.engine_overrides)


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"params": {"mini_batch_size": 64}}, "mini_batch_too_large"),
        ({"params": {"micro_batch_size": 48}}, "micro_batch_not_divisor"),
        (
            {
                "params": {"batch_size": 5, "mini_batch_size": 4, "group_size": 3, "dynamic_batch": True},
                "gpus": 2,
            },
            "batch_not_divisible",
        ),
        ({"params": {"group_size": 1, "micro_batch_size": 16}}, "group_of_one"),
        ({"params": {"dynamic_batch": True, "max_tokens_per_gpu": 527}}, "tokens_per_pass_too_small"),
        ({"params": {"tensor_parallel": 2}}, "tensor_parallel_not_divisor"),
        ({"params": {"reward": "regex"}}, "pattern_missing"),
        ({"params": {"reward": "regex", "reward_pattern": "("}}, "bad_pattern"),
        ({"overrides": {"actor_rollout_ref.rollout.max_model_len": 527}}, "too_long_for_sampler"),
        *[
            ({"recipe": recipe, "params": {"group_size": 1, "micro_batch_size": 16}}, "group_of_one")
            for recipe in ("dr_grpo", "dapo", "gspo", "cispo", "sapo", "reinforce_plus_plus_baseline")
        ],
        *[
            ({"recipe": recipe, "params": {"group_size": 1, "micro_batch_size": 32}}, "group_of_one")
            for recipe in ("rloo", "opo", "gpg")
        ],
        ({"recipe": "ppo", "params": {"micro_batch_size": 48}}, "micro_batch_not_divisor"),
        ({"recipe": "ppo", "overrides": {"critic.ppo_mini_batch_size": 256}}, "mini_batch_too_large"),
        (
            {"recipe": "ppo", "overrides": {"critic.fsdp.micro_batch_size_per_gpu": 48}},
            "micro_batch_not_divisor",
        ),
        (
            {
                "recipe": "ppo",
                "params": {"dynamic_batch": True},
                "overrides": {"critic.ppo_infer_max_token_len_per_gpu": 100},
            },
            "tokens_per_pass_too_small",
        ),
        ({"recipe": "ppo", "params": {"critic_warmup": 31}}, "policy_never_trained"),
        ({"overrides": {"trainer.critic_warmup": 3}}, "warmup_without_critic"),
        ({"recipe": "ppo", "overrides": {"critic.use_dynamic_bsz": True}}, "ineffective_key"),
        ({"recipe": "dapo", "params": {"overlong_buffer": 17}}, "overlong_buffer_too_long"),
        ({"recipe": "dapo", "params": {"max_generation_batches": 1}}, "no_replacements"),
        ({"recipe": "dapo", "params": {"inflight_generation_batches": 11}}, "more_at_once_than_allowed"),
        (
            {"recipe": "dapo", "overrides": {"algorithm.filter_groups.metric": "grade"}},
            "filter_metric_unknown",
        ),
        (
            {"recipe": "remax", "overrides": {"trainer.v1.trainer_mode": "colocate_async"}},
            "estimator_needs_sync",
        ),
        ({"overrides": {"algorithm.adv_estimator": "gdpo"}}, "estimator_not_supported"),
        ({"params": {"rewards": [{"name": "nosuch"}]}}, "unknown_reward"),
        ({"params": {"rewards": [{"weight": 2}]}}, "invalid_value"),
        ({"row_count": 95}, "too_few_rows"),
        ({"recipe": "nosuch"}, "unknown_recipe"),
        ({"preset": "gpu-24"}, "unknown_preset"),
        ({"recipe": "sft", "gpus": 3}, "batch_not_divisible"),
        ({"recipe": "sft", "params": {"max_tokens_per_gpu": 100}}, "tokens_per_pass_too_small"),
        (
            {"recipe": "sft", "params": {"packing": False, "micro_batch_size": 5}},
            "micro_batch_not_divisor",
        ),
        ({"recipe": "sft", "row_count": 95}, "too_few_rows"),
        ({"recipe": "sft", "params": {"quantize_base": True}}, "qlora_unsupported"),
        ({"recipe": "cpt", "params": {"max_tokens_per_gpu": 100}}, "tokens_per_pass_too_small"),
    ],
)
def test_what_cannot_run_is_refused_before_launch(choices: dict, code: str, request_for: Build) -> None:
    composition = compose(request_for(**choices))

    assert codes(composition.errors) == [code]


def test_few_documents_may_fill_many_blocks(request_for: Build) -> None:
    composition = compose(request_for(recipe="cpt", row_count=80))

    assert composition.errors == []
    assert composition.config["data"]["custom_cls"]["name"] == "DocumentBlocks"


@pytest.mark.parametrize("is_packed", [True, False])
def test_packing_joins_conversations_and_fills_passes_by_tokens(is_packed: bool, request_for: Build) -> None:
    config = compose(request_for(recipe="sft", params={"packing": is_packed})).config

    assert config["model"]["use_remove_padding"] is is_packed
    assert config["data"]["use_dynamic_bsz"] is is_packed


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"params": {"mini_batch_size": 24}}, "uneven_mini_batches"),
        ({"params": {"learning_rate": 1e-3}}, "high_learning_rate"),
        ({"params": {"lora_rank": 8}}, "adapter_checkpoint"),
        ({"params": {"top_p": 0.9}}, "truncated_sampling"),
        ({"recipe": "rloo", "params": {"use_kl_loss": True}}, "kl_twice"),
        ({"recipe": "rloo", "params": {"kl_reward_coefficient": 0}}, "kl_without_weight"),
        ({"recipe": "gspo", "params": {"clip_ratio_high": 0.2}}, "wide_sequence_clip"),
        ({"recipe": "sapo", "params": {"temperature_negative": 0.9}}, "gate_favours_worse"),
        ({"recipe": "dapo", "params": {"overlong_buffer": 16}}, "overlong_from_start"),
        ({"preset": "gpu-8x80gb", "gpus": 4, "platform": "cuda"}, "preset_gpus"),
        ({"overrides": {"algorithm.norm_adv_by_std_in_grpo": False}}, "changes_algorithm"),
    ],
)
def test_what_rarely_works_is_warned_of(choices: dict, code: str, request_for: Build) -> None:
    composition = compose(request_for(**choices))

    assert composition.errors == []
    assert code in codes(composition.warnings)


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


def test_composing_again_takes_milliseconds(request_for: Build) -> None:
    for engine_recipe in ("grpo", "sft"):
        compose(request_for(recipe=engine_recipe))
    durations = []

    for _ in range(11):
        start = time.perf_counter()
        compose(request_for())
        durations.append(time.perf_counter() - start)

    assert sorted(durations)[5] < 0.020


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


def test_a_mixture_of_rewards_takes_the_place_of_the_simple_knobs(request_for: Build) -> None:
    rewards = [{"name": "exact", "weight": 0.8}, {"name": "format", "weight": 0.2}]

    composition = compose(request_for(params={"rewards": rewards, "reward": "regex"}))

    used = composition.config["reward"]["custom_reward_function"]["reward_kwargs"]["rewards"]
    assert composition.errors == []
    assert [(term["name"], term["weight"]) for term in used] == [("exact", 0.8), ("format", 0.2)]


def test_dr_grpo_divides_by_the_longest_response_that_is_allowed(request_for: Build) -> None:
    composition = compose(request_for(recipe="dr_grpo", params={"max_response_length": 40}))

    assert composition.config["actor_rollout_ref"]["actor"]["loss_scale_factor"] == 40


def test_dapo_penalises_the_end_of_the_longest_response(request_for: Build) -> None:
    composition = compose(request_for(recipe="dapo", params={"max_response_length": 40}))

    shaping = composition.config["reward"]["reward_kwargs"]
    assert shaping["max_resp_len"] == 40
    assert shaping["overlong_buffer_cfg"] == {"enable": True, "len": 8, "log": True, "penalty_factor": 1.0}


@pytest.mark.parametrize("recipe", ["opo", "gpg"])
def test_an_on_policy_recipe_makes_one_update_of_a_step(recipe: str, request_for: Build) -> None:
    config = compose(request_for(recipe=recipe, params={"batch_size": 48})).config

    actor = config["actor_rollout_ref"]["actor"]
    assert (actor["ppo_mini_batch_size"], actor["ppo_epochs"]) == (48, 1)


def test_the_critic_goes_with_the_policy_in_what_belongs_to_the_machine(request_for: Build) -> None:
    critic = compose(request_for(recipe="ppo")).config["critic"]

    assert critic["model"]["path"] == "/data/models/starter"
    assert critic["fsdp"]["use_dynamic_bsz"] is False
    assert (
        critic["fsdp"]["micro_batch_size_per_gpu"] == critic["fsdp"]["infer_micro_batch_size_per_gpu"] == 64
    )
