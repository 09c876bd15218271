"""A person's own settings of the engine: which reach it, and which are refused."""

from collections.abc import Callable

import pytest
from trellis_recipes.compose import ComposeRequest, compose
from trellis_testing.issues import codes

Build = Callable[..., ComposeRequest]


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
