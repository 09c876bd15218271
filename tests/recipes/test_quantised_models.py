"""Models whose files are quantised by bitsandbytes: who can train on them, and what memory they take."""

import dataclasses
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.memory.architecture import Architecture, find_architecture
from trellis_recipes.memory.estimate import Machine, estimate_memory
from trellis_recipes.memory.reference_models import reference_models
from trellis_recipes.preset_sizes import compose_preset

Build = Callable[..., ComposeRequest]
GIB = 1024**3
SHAPE = {
    "model_type": "qwen3",
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
}


def quantised(bits: int) -> Architecture:
    return dataclasses.replace(reference_models()["1.5B"], base_bits=bits)


@pytest.fixture
def with_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: object() if name == "bitsandbytes" else find(name)
    )


@pytest.mark.parametrize(
    ("quantization", "bits"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "gptq", "bits": 4}, 0),
        (None, 0),
        ("nonsense", 0),
    ],
)
def test_the_bits_of_a_model_are_read_from_its_configuration(
    tmp_path: Path, quantization: Any, bits: int
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**SHAPE, "quantization_config": quantization}))

    shape = find_architecture(tmp_path)

    assert shape is not None
    assert shape.base_bits == bits


@pytest.mark.usefixtures("with_bitsandbytes")
@pytest.mark.parametrize("recipe", ["dpo", "orpo", "kto", "simpo", "agent_sft", "agent_dpo"])
@pytest.mark.parametrize("bits", [4, 8])
def test_trl_trains_an_adapter_on_a_quantised_model(recipe: str, bits: int, request_for: Build) -> None:
    composition = compose(
        request_for(recipe=recipe, platform="cuda", preset="gpu-24gb", architecture=quantised(bits))
    )

    assert composition.errors == []


@pytest.mark.parametrize("recipe", ["sft", "cpt", "grpo", "ppo", "agent_retrieval"])
def test_other_trainers_refuse_it_before_the_launch(recipe: str, request_for: Build) -> None:
    composition = compose(
        request_for(recipe=recipe, platform="cuda", preset="gpu-24gb", architecture=quantised(4))
    )

    (error,) = composition.errors
    assert (error.code, error.field) == ("quantised_model_unsupported", "model")
    assert "agent_sft" in error.message


@pytest.fixture
def without_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "bitsandbytes" else find(name)
    )


@pytest.mark.usefixtures("without_bitsandbytes")
@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"platform": "cuda", "preset": "gpu-24gb"}, "quantization_not_installed"),
        ({"platform": "cpu", "params": {"lora_rank": 8}}, "quantization_not_installed"),
    ],
)
def test_what_a_quantised_model_lacks_here_is_said_before_the_launch(
    choices: dict[str, Any], code: str, request_for: Build
) -> None:
    composition = compose(request_for(recipe="dpo", architecture=quantised(4), **choices))

    assert [(each.code, each.field) for each in composition.errors] == [(code, "model")]


@pytest.mark.usefixtures("with_bitsandbytes")
@pytest.mark.parametrize(
    ("params", "code"),
    [({"lora_rank": 0}, "quantization_needs_adapter"), ({"quantize_base": True}, "quantised_twice")],
)
def test_a_quantised_model_is_neither_trained_whole_nor_quantised_again(
    params: dict[str, Any], code: str, request_for: Build
) -> None:
    composition = compose(
        request_for(
            recipe="dpo", architecture=quantised(4), platform="cuda", preset="gpu-24gb", params=params
        )
    )

    assert [each.code for each in composition.errors] == [code]


@pytest.mark.usefixtures("with_bitsandbytes")
def test_the_estimate_of_a_quantised_model_is_that_of_quantising_it() -> None:
    recipe = get_recipe("agent_sft")
    preset = next(each for each in recipe.presets if each.id == "gpu-80gb")
    whole, packed = reference_models()["32B"], 17_000_000_000
    in_four_bits = dataclasses.replace(whole, base_bits=4)

    def peak(model: Any, files: int | None = None, **params: Any) -> int:
        composed = compose_preset(recipe, preset, params)
        return estimate_memory(
            model,
            engine=composed.engine,
            recipe=recipe.id,
            config=composed.config,
            platform="cuda",
            gpus=1,
            env=composed.env,
            machine=Machine(80 * GIB),
            parameter_count=files,
        ).per_gpu_bytes

    assert peak(in_four_bits, packed) == peak(whole, quantization="4bit") < 80 * GIB < peak(whole)
