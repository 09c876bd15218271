"""Composition of the preference recipes against the installed TRL's config classes."""

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.checks import preference
from trellis_recipes.checks.preference import BITSANDBYTES
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.trl_schema import TRAINERS, load_trl_schema

Build = Callable[..., ComposeRequest]
REPOSITORY_ROOT = Path(__file__).parents[2]
RECIPES = [recipe.id for recipe in list_recipes() if recipe.engine is Engine.TRL]


def codes(issues: list) -> list[str]:
    return [issue.code for issue in issues]


def read_lines(composition: Composition) -> dict:
    parser = OverridesParser.create()
    parsed = parser.parse_overrides(composition.engine_overrides)
    values = {each.key_or_group: each.value() for each in parsed}
    return {key: getattr(value, "text", value) for key, value in values.items()}


def test_each_has_its_config_class() -> None:
    assert set(RECIPES) == set(TRAINERS)
    assert {name for name in RECIPES if get_recipe(name).is_experimental} == {"orpo", "simpo"}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_shown_configuration_is_what_the_lines_say(recipe: str, request_for: Build) -> None:
    composition = compose(request_for(recipe=recipe, model_path="/data/it's here/model, v2"))

    assert composition.config == {**load_trl_schema(recipe).tree, **read_lines(composition)}
    assert composition.config["model_name_or_path"] == "/data/it's here/model, v2"


@pytest.mark.parametrize(
    ("key", "value", "code", "suggestion"),
    [
        ("betta", 1, "unknown_engine_key", "beta"),
        ("optim", 3, "wrong_type", None),
        ("padding_free", True, "ineffective_key", None),
        ("output_dir", "/etc", "reserved_key", None),
        ("report_to", "wandb", "reserved_key", None),
        ("push_to_hub", True, "reserved_key", None),
        ("deepspeed", "/etc/x.json", "reserved_key", None),
        ("model_init_kwargs", {"subfolder": "x"}, "reserved_key", None),
        ("trust_remote_code", True, "option_refused", None),
        ("train_file", "/etc/passwd", "reserved_key", None),
        ("gradient_accumulation_steps", 3, "reserved_key", None),
    ],
)
def test_a_setting_that_cannot_be_made_is_explained(
    key: str, value: object, code: str, suggestion: str | None, request_for: Build
) -> None:
    (issue,) = compose(request_for(recipe="dpo", overrides={key: value})).errors

    assert (issue.code, issue.field, issue.suggestion) == (code, f"overrides.{key}", suggestion)


def test_an_own_setting_reaches_the_trainer(request_for: Build) -> None:
    composition = compose(request_for(recipe="dpo", overrides={"adam_beta2": 0.95, "beta": 0.5}))

    assert (composition.config["adam_beta2"], composition.config["beta"]) == (0.95, 0.5)
    assert codes(composition.warnings) == ["shadows_parameter"]


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"params": {"batch_size": 32, "micro_batch_size": 5}}, "micro_batch_not_divisor"),
        ({"params": {"batch_size": 33}, "gpus": 2}, "batch_not_divisible"),
        ({"row_count": 34}, "too_few_rows"),
        ({"params": {"loss_type": "hinge", "label_smoothing": 0.1}}, "label_smoothing_without_effect"),
        ({"params": {"quantize_base": True}}, "quantization_needs_adapter"),
        (
            {"params": {"quantize_base": True}, "platform": "cuda", "preset": "gpu-80gb"},
            "quantization_needs_adapter",
        ),
    ],
)
def test_what_cannot_run_is_refused_before_launch(
    choices: dict, code: str, request_for: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preference.importlib.util, "find_spec", lambda _name: object())

    assert codes(compose(request_for(recipe="dpo", **choices)).errors) == [code]


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_quantisation_without_its_package_is_refused(
    platform: str, request_for: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_trl_schema("dpo")
    monkeypatch.setattr(preference.importlib.util, "find_spec", lambda _name: None)
    params = {"quantize_base": True, "lora_rank": 8}

    composition = compose(request_for(recipe="dpo", platform=platform, params=params))

    assert codes(composition.errors) == ["quantization_not_installed"]
    assert BITSANDBYTES in composition.errors[0].message


def test_the_package_that_a_refusal_names_is_the_one_of_the_extra() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]

    assert project["optional-dependencies"]["quantized"] == [BITSANDBYTES]
    assert BITSANDBYTES in (REPOSITORY_ROOT / "frontend/src/i18n/issueTexts.ts").read_text()


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"params": {"beta": 5}}, "unusual_beta"),
        ({"params": {"learning_rate": 0.1}}, "high_learning_rate"),
        ({"params": {"learning_rate": 2e-4}, "platform": "cuda", "preset": "gpu-80gb"}, "high_learning_rate"),
        ({"params": {"lora_rank": 8, "learning_rate": 1e-5}}, "adapter_checkpoint"),
    ],
)
def test_what_rarely_works_is_warned_of(choices: dict, code: str, request_for: Build) -> None:
    composition = compose(request_for(recipe="dpo", **choices))

    assert composition.errors == []
    assert codes(composition.warnings) == [code]


def test_a_step_is_made_of_as_many_passes_as_it_needs(request_for: Build) -> None:
    params = {"batch_size": 48, "micro_batch_size": 4}

    config = compose(request_for(recipe="dpo", gpus=2, params=params)).config

    assert (config["per_device_train_batch_size"], config["gradient_accumulation_steps"]) == (4, 6)
    assert config["ddp_backend"] == "gloo"


@pytest.mark.parametrize(
    ("smoothing", "loss", "expected"),
    [(0.0, "sigmoid", "sigmoid"), (0.1, "sigmoid", "robust"), (0.0, "ipo", "ipo")],
)
def test_wrong_labels_are_allowed_for_by_the_robust_loss(
    smoothing: float, loss: str, expected: str, request_for: Build
) -> None:
    params = {"loss_type": loss, "label_smoothing": smoothing}

    assert compose(request_for(recipe="dpo", params=params)).config["loss_type"] == [expected]


@pytest.mark.parametrize("loss", ["simpo", "sigmoid", "hinge"])
def test_cpo_is_simpo_with_another_loss(loss: str, request_for: Build) -> None:
    params = {"loss_type": loss, "beta": 0.1, "supervised_weight": 1.0}

    composition = compose(request_for(recipe="simpo", params=params))

    assert (composition.errors, composition.warnings) == ([], [])
    config = composition.config
    assert (config["loss_type"], config["beta"], config["cpo_alpha"]) == (loss, 0.1, 1.0)


def test_what_one_loss_of_simpo_takes_suits_not_every_other(request_for: Build) -> None:
    refused = compose(request_for(recipe="simpo", params={"loss_type": "hinge", "label_smoothing": 0.1}))
    steep = compose(request_for(recipe="simpo", params={"loss_type": "sigmoid"}))
    usual = compose(request_for(recipe="simpo"))

    assert codes(refused.errors) == ["label_smoothing_without_effect"]
    assert codes(steep.warnings) == ["beta_of_simpo"]
    assert usual.warnings == []


def test_precision_suits_the_machine(request_for: Build) -> None:
    def precision(**choices: object) -> tuple:
        config = compose(request_for(recipe="dpo", preset="gpu-80gb", **choices)).config
        return config["dtype"], config["bf16"], config["use_cpu"]

    assert precision() == ("float32", False, True)
    assert precision(platform="cuda") == ("float32", True, False)
    assert precision(platform="cuda", params={"lora_rank": 8}) == ("bfloat16", True, False)


def test_the_adapter_of_a_reward_model_has_its_head(request_for: Build) -> None:
    config = compose(request_for(recipe="reward_model", params={"lora_rank": 8})).config

    assert (config["lora_task_type"], config["lora_modules_to_save"]) == ("SEQ_CLS", ["score"])


def test_a_resumed_run_is_not_measured_again_at_its_start(request_for: Build) -> None:
    checkpoint = "/c/global_step_5"

    config = compose(request_for(recipe="dpo", resume_from=checkpoint)).config

    assert (config["resume_from_checkpoint"], config["eval_on_start"]) == (checkpoint, False)
    assert compose(request_for(recipe="dpo")).config["eval_on_start"] is True


def test_composing_imports_neither_torch_nor_trl() -> None:
    program = (
        "import sys\n"
        "from trellis_recipes.compose import ComposeRequest, compose\n"
        "result = compose(ComposeRequest(recipe='dpo', platform='cpu', gpus=1, model_path='m',"
        " train_path='/t', checkpoint_dir='/c', seed=0))\n"
        "assert not result.errors\n"
        "print([name for name in ('torch', 'trl', 'transformers') if name in sys.modules])\n"
    )

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert printed.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("params", "beta", "warned"),
    [
        ({"loss_type": "sigmoid"}, 0.1, False),
        ({"loss_type": "ipo"}, 1.0, False),
        ({"loss_type": "ipo", "beta": 0.1}, 0.1, True),
        ({"loss_type": "ipo", "beta": 0.5}, 0.5, False),
    ],
)
def test_ipo_has_a_tau_of_its_own(params: dict, beta: float, warned: bool, request_for: Build) -> None:
    composition = compose(request_for(recipe="dpo", params=params))

    assert (composition.config["beta"], composition.params["beta"]) == (beta, beta)
    assert ("low_tau" in codes(composition.warnings)) is warned
