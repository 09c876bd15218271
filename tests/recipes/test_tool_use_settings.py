"""B2: the defaults of the tool-use pipeline, in its settings and in the recipes, and what changes them."""

from pathlib import Path

import pytest
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.tool_use_settings import (
    BadSettings,
    RLSettings,
    SFTSettings,
    ToolUseSettings,
    load_settings,
    read_weights,
)

SFT_DEFAULTS = {
    "train_data": "agent_sft:train",
    "dev_data": "agent_sft:dev",
    "task_weights": {
        "tool_selection": 0.35,
        "multi_step_planning": 0.30,
        "timing_decision": 0.20,
        "tool_retrieval": 0.15,
    },
    "base_model": "Qwen/Qwen2.5-7B-Instruct",
    "max_length": 4096,
    "lora": {
        "r": 64,
        "alpha": 128,
        "dropout": 0.05,
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    },
    "epochs": 3,
    "batch_size": 4,
    "gradient_accumulation": 8,
    "learning_rate": 2e-5,
    "warmup_ratio": 0.1,
    "lr_schedule": "cosine",
    "use_coreset_selection": False,
    "coreset_target_size": 1000,
    "coreset_strategy": "hybrid",
    "use_online_continual": False,
    "continual_buffer_size": 2048,
    "continual_replay_ratio": 0.25,
}
RL_DEFAULTS = {
    "algorithm": "dpo",
    "dpo": {"beta": 0.1, "reference_free": False, "label_smoothing": 0.0, "loss_type": "sigmoid"},
    "ppo": {"kl_coef": 0.02, "clip_range": 0.2, "vf_coef": 0.5, "num_rollouts": 128, "chunk_size": 64},
    "grpo": {"group_size": 4, "beta": 0.1, "use_advantage": True},
}
WARM_UP_DEFAULTS = {"enabled": False, "data": "agent_sft", "samples": 1000, "focus_tags": []}


def test_every_default_is_as_specified() -> None:
    settings = ToolUseSettings()

    assert settings.sft.model_dump(exclude_none=True) == SFT_DEFAULTS
    assert settings.rl.model_dump(exclude_none=True) == RL_DEFAULTS
    assert settings.warm_up.model_dump() == WARM_UP_DEFAULTS


@pytest.mark.parametrize(
    ("recipe", "parameters"),
    [
        ("agent_sft", SFTSettings().parameters()),
        ("agent_dpo", RLSettings().parameters("dpo")),
        ("agent_ppo", RLSettings().parameters("ppo")),
        ("agent_grpo", RLSettings().parameters("grpo")),
    ],
)
def test_the_recipes_have_the_same_defaults(recipe: str, parameters: dict) -> None:
    defaults = {parameter.name: parameter.default for parameter in get_recipe(recipe).parameters}
    for parameter in get_recipe(recipe).parameters:
        if parameter.auto == "half_batch":
            defaults[parameter.name] = defaults["batch_size"] // 2

    assert {name: defaults[name] for name in parameters} == parameters


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("development", "Qwen/Qwen2.5-1.5B-Instruct", (16, 1, 16, 2048, "4bit")),
        ("production", "Qwen/Qwen2.5-7B-Instruct", (64, 4, 8, 4096, "8bit")),
    ],
)
def test_presets_are_of_a_size_of_model(name: str, model: str, expected: tuple) -> None:
    preset = next(each for each in get_recipe("agent_sft").presets if each.id == name)
    names = ("lora_rank", "batch_size", "gradient_accumulation", "max_length", "quantization")

    assert tuple(preset.params[each] for each in names) == expected
    assert ToolUseSettings().base_model(name) == model


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("preset: development\nsft: {epochs: 1, lora: {r: 8}}\nrl: {ppo: {vf_coef: 1.0}}\n")

    settings = load_settings(path)

    assert settings.sft.parameters(given_only=True) == {"epochs": 1, "lora_rank": 8}
    assert settings.rl.parameters("ppo", given_only=True) == {"value_coefficient": 1.0}
    assert settings.base_model() == "Qwen/Qwen2.5-1.5B-Instruct"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sft: {epoch: 1}", "sft.epoch: Extra inputs"),
        ("rl: {algorithm: rloo}", "rl.algorithm"),
        ("sft: {task_weights: {tool_selection: 0}}", "one is above 0"),
        ("sft: {task_weights: {selection: 1}}", "sft.task_weights.selection"),
        ("sft: [", "is not YAML"),
        ("- a", "the file"),
    ],
)
def test_a_file_with_mistakes_is_refused_by_key(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)

    with pytest.raises(BadSettings, match=said):
        load_settings(path)


def test_weights_are_read_from_a_line() -> None:
    assert read_weights("tool_selection=.75, timing_decision=0.25") == {
        "tool_selection": 0.75,
        "timing_decision": 0.25,
    }
    for wrong in ("tool_selection", "tool_selection=much", "flying=1", "tool_selection=-1", ""):
        with pytest.raises(BadSettings):
            read_weights(wrong)
