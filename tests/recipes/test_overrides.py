"""A person's own settings of the engine: which reach it, and which are refused."""

from collections.abc import Callable

import pytest
from trellis_contracts.recipe import Engine
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.overrides import RESERVED, check_overrides
from trellis_recipes.schema import load_schema
from trellis_testing.issues import codes
from trellis_testing.recipes import engines_own_view

Build = Callable[..., ComposeRequest]


def test_an_own_setting_wins_over_its_parameter_and_says_so(request_for: Build) -> None:
    composition = compose(request_for(overrides={"actor_rollout_ref.rollout.n": 4}))

    assert composition.config["actor_rollout_ref"]["rollout"]["n"] == 4
    assert codes(composition.warnings) == ["shadows_parameter"]


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
        # Where the key moved to is the platform's to set, or does not exist: there is nothing to suggest.
        ("custom_reward_function.path", "ineffective_key", None),
        (
            "reward_model.reward_kwargs.overlong_buffer_cfg.len",
            "ineffective_key",
            "reward.reward_kwargs.overlong_buffer_cfg.len",
        ),
        ("reward_model.launch_reward_fn_async", "ineffective_key", None),
        ("data.train_filez", "unknown_engine_key", "data.train_batch_size"),
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
    assert suggestion or "use '" not in issue.message


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("actor_rollout_ref.actor.megatron.tensor_model_parallel_size", "Megatron-LM"),
        ("actor_rollout_ref.ref.megatron.param_offload", "Megatron-LM"),
        ("critic.megatron.use_mbridge", "Megatron-LM"),
        ("async_training.staleness_threshold", "asynchronous trainer"),
        ("data.image_key", "images"),
        ("actor_rollout_ref.rollout.engine_kwargs.sglang.attention_backend", "SGLang"),
    ],
)
def test_a_key_of_a_part_that_is_not_here_gets_a_sentence_about_it(
    key: str, names: str, request_for: Build
) -> None:
    (issue,) = compose(request_for(overrides={key: 2})).errors

    assert (issue.code, issue.suggestion) == ("option_refused", None)
    assert names in issue.message


@pytest.mark.parametrize(
    ("recipe", "key", "value", "suggestion"),
    [
        ("grpo", "actor_rollout_ref.rollout.name", "sglang", "vllm"),
        ("grpo", "actor_rollout_ref.rollout.name", "trtllm", "vllm"),
        ("grpo", "actor_rollout_ref.rollout.name", "nonsense", "vllm"),
        ("grpo", "actor_rollout_ref.rollout.mode", "sync", "async"),
        ("grpo", "model_engine", "megatron", "dp"),
        ("grpo", "actor_rollout_ref.actor.strategy", "megatron", None),
        ("grpo", "actor_rollout_ref.actor.strategy", "fsdp3", "fsdp"),
        ("ppo", "critic.strategy", "veomni", None),
        ("grpo", "algorithm.adv_estimator", "grop", "grpo"),
        ("grpo", "actor_rollout_ref.actor.policy_loss.loss_mode", "vanila", "vanilla"),
        ("grpo", "actor_rollout_ref.actor.loss_agg_mode", "token_mean", "token-mean"),
        ("grpo", "actor_rollout_ref.actor.optim.lr_scheduler_type", "cosin", "cosine"),
        ("grpo", "actor_rollout_ref.actor.optim.lr_scheduler_type", "linear", None),
        ("grpo", "trainer.v1.trainer_mode", "separate_async", "colocate_async"),
        ("grpo", "trainer.v1.trainer_mode", "asynch", "sync"),
        ("sft", "engine.strategy", "megatron", None),
        ("sft", "engine", "megatron", "fsdp"),
        ("sft", "optim.lr_scheduler_type", "linear", None),
    ],
)
def test_a_choice_that_the_engine_cannot_make_here_is_refused_with_one_that_it_can(
    recipe: str, key: str, value: str, suggestion: str | None, request_for: Build
) -> None:
    (issue,) = compose(request_for(recipe=recipe, overrides={key: value})).errors

    assert (issue.code, issue.field) == ("unknown_choice", f"overrides.{key}")
    assert value in issue.message
    assert issue.suggestion == suggestion or suggestion is None


@pytest.mark.parametrize(
    ("recipe", "overrides"),
    [
        ("sft", {"engine": "fsdp"}),
        ("sft", {"engine": "fsdp", "engine.strategy": "fsdp2"}),
        ("grpo", {"model_engine": "dp"}),
        ("grpo", {"actor_rollout_ref.rollout.name": "vllm", "actor_rollout_ref.rollout.mode": "async"}),
        ("grpo", {"actor_rollout_ref.actor.strategy": "fsdp"}),
        ("grpo", {"algorithm.rollout_correction.rollout_is_threshold": "0.5_4.0"}),
    ],
)
def test_what_the_engine_does_anyway_may_be_said(recipe: str, overrides: dict, request_for: Build) -> None:
    composition = compose(request_for(recipe=recipe, overrides=overrides))

    assert composition.errors == []
    assert composition.config == engines_own_view(composition)


def test_only_the_first_unknown_keys_get_a_hint() -> None:
    """To look for one takes long: with another engine's settings, the request would take seconds."""
    misspelled = {f"actor_rollout_ref.actor.clip_ratio{number}": 1 for number in range(30)}

    _, issues = check_overrides(load_schema(Engine.VERL_PPO), misspelled)

    assert codes(issues) == ["unknown_engine_key"] * 30
    assert all(issue.suggestion for issue in issues[:10])
    assert not any(issue.suggestion for issue in issues[10:])


@pytest.mark.parametrize("engine", [Engine.VERL_PPO, Engine.VERL_SFT])
def test_a_hint_names_a_key_that_can_be_set(engine: Engine) -> None:
    schema = load_schema(engine)

    for key in ("reward_model.reward_kwargs.x", "trainer.default_local_dirs", "data.train_file", "model.pth"):
        _, issues = check_overrides(schema, {key: 1})
        hint = issues[0].suggestion
        assert hint is None or (schema.find(hint) is not None and hint not in RESERVED[engine])


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

    assert codes(composition.errors) == ["option_refused"]


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
