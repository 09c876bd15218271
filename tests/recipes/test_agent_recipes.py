"""What the agent recipes' parameters become in the engines."""

from collections.abc import Callable

import pytest
from trellis_recipes.checks import preference
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.trl_schema import load_trl_schema

Build = Callable[..., ComposeRequest]


def codes(issues: list) -> list[str]:
    return [issue.code for issue in issues]


@pytest.fixture
def with_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    load_trl_schema("agent_sft")
    monkeypatch.setattr(preference.importlib.util, "find_spec", lambda _name: object())


@pytest.mark.usefixtures("with_bitsandbytes")
@pytest.mark.parametrize(("preset", "bits"), [("development", "4bit"), ("production", "8bit")])
def test_supervised_training_gets_adapter_batches_and_schedule(
    preset: str, bits: str, request_for: Build
) -> None:
    composition = compose(request_for(recipe="agent_sft", platform="cuda", preset=preset))

    config = composition.config
    passes = {"development": (1, 16), "production": (4, 8)}[preset]
    assert composition.errors == []
    assert (config["per_device_train_batch_size"], config["gradient_accumulation_steps"]) == passes
    assert (config["load_in_4bit"], config["load_in_8bit"]) == (bits == "4bit", bits == "8bit")
    assert (config["lora_dropout"], config["lora_target_modules"]) == (
        0.05,
        ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    )
    assert (config["lr_scheduler_type"], config["warmup_steps"], config["learning_rate"]) == (
        "cosine",
        0.1,
        2e-5,
    )
    assert config["num_train_epochs"] == 3.0


@pytest.mark.parametrize("recipe", ["agent_sft", "agent_dpo"])
def test_without_bitsandbytes_a_preset_says_so(
    recipe: str, request_for: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_trl_schema(recipe)
    monkeypatch.setattr(preference.importlib.util, "find_spec", lambda _name: None)

    (error,) = compose(request_for(recipe=recipe, platform="cuda", preset="production")).errors

    assert error.code == "quantization_not_installed"
    assert error.message == (
        "8-bit weights require the 'bitsandbytes' package, which is not installed: "
        "pip install 'bitsandbytes>=0.50,<0.51'."
    )


def test_rows_of_a_step_are_counted_over_passes_and_gpus(request_for: Build) -> None:
    params = {"batch_size": 4, "gradient_accumulation": 8, "validation_rows": 0}
    enough, too_few = (
        compose(request_for(recipe="agent_sft", params=params, gpus=2, row_count=rows)) for rows in (64, 63)
    )

    assert enough.errors == []
    assert codes(too_few.errors) == ["too_few_rows"]


def test_an_adapter_needs_modules(request_for: Build) -> None:
    params = {"lora_rank": 8, "lora_targets": " , "}

    assert codes(compose(request_for(recipe="agent_sft", params=params)).errors) == [
        "adapter_without_modules"
    ]


def test_dpo_without_a_reference_is_asked_of_our_own_trainer(request_for: Build) -> None:
    composition = compose(
        request_for(recipe="agent_dpo", params={"reference_free": True, "loss_type": "ipo"})
    )

    assert (composition.config["reference_free"], composition.config["loss_type"]) == (True, ["ipo"])


def test_ppo_weighs_the_critics_loss_by_its_gradients_limit(request_for: Build) -> None:
    config = compose(request_for(recipe="agent_ppo")).config
    heavier = compose(request_for(recipe="agent_ppo", params={"value_coefficient": 2.0})).config

    assert (config["critic"]["optim"]["clip_grad"], heavier["critic"]["optim"]["clip_grad"]) == (2.0, 0.5)
    assert config["algorithm"]["use_kl_in_reward"] is True
    assert config["algorithm"]["kl_ctrl"]["kl_coef"] == 0.02


def test_grpo_without_advantages_takes_the_reward_alone(request_for: Build) -> None:
    config = compose(request_for(recipe="agent_grpo", params={"use_kl_loss": True})).config
    alone = compose(request_for(recipe="agent_grpo", params={"use_advantage": False})).config

    assert config["actor_rollout_ref"]["actor"]["kl_loss_coef"] == 0.1
    assert config["actor_rollout_ref"]["rollout"]["n"] == 4
    assert config["algorithm"]["adv_estimator"] == "grpo"
    assert alone["algorithm"]["adv_estimator"] == "reward_alone"


@pytest.mark.parametrize("recipe", ["agent_ppo", "agent_grpo"])
def test_rollouts_are_scored_by_the_use_of_tools(recipe: str, request_for: Build) -> None:
    config = compose(request_for(recipe=recipe)).config

    rewards = config["reward"]["custom_reward_function"]["reward_kwargs"]["rewards"]
    assert [term["name"] for term in rewards] == ["tool_use"]


@pytest.mark.parametrize("recipe", ["agent_ppo", "agent_grpo"])
def test_verls_trainers_say_that_they_hold_no_quantised_base(recipe: str, request_for: Build) -> None:
    composition = compose(request_for(recipe=recipe, params={"quantize_base": True}))

    assert codes(composition.errors) == ["qlora_unsupported"]


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ({"name": "tool_use", "options": {"weight_format": 0.5, "run_calls": False}}, []),
        ({"name": "exact"}, ["invalid_rewards"]),
        ({"name": "tool_use", "options": {"weight_speed": 1}}, ["unknown_option"]),
    ],
)
def test_sampled_pairs_are_ranked_by_the_use_of_tools_alone(
    term: dict[str, object], found: list[str], request_for: Build
) -> None:
    assert codes(compose(request_for(recipe="agent_dpo", params={"rewards": [term]})).errors) == found
