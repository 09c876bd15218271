"""Checkpoints that preference training has left, exported by the engine and loaded as any user would."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import EXIT_SUCCEEDED

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]
TOKENS = torch.arange(3, 35).reshape(2, 16)
LORA = {"lora_rank": 4, "lora_alpha": 12}
CLASSES: dict[str, Any] = {"dpo": AutoModelForCausalLM, "reward_model": AutoModelForSequenceClassification}


def compute(model: Any) -> torch.Tensor:
    # A classifier looks for the last token that is no padding.
    mask = torch.ones_like(TOKENS)
    with torch.no_grad():
        found: torch.Tensor = model.eval()(input_ids=TOKENS, attention_mask=mask).logits
    return found


def load(recipe: str, folder: Path | str) -> Any:
    return CLASSES[recipe].from_pretrained(folder, dtype=torch.float32)


def with_adapter(recipe: str, base: Path, adapter: Path) -> Any:
    """The base with an adapter, as PEFT puts them together."""
    import peft

    scores = {"num_labels": 1} if recipe == "reward_model" else {}
    model = CLASSES[recipe].from_pretrained(base, dtype=torch.float32, **scores)
    model.config.pad_token_id = AutoTokenizer.from_pretrained(base).pad_token_id
    return peft.PeftModel.from_pretrained(model, adapter)


@pytest.mark.parametrize("recipe", ["dpo", "reward_model"])
def test_a_whole_model_computes_what_its_checkpoint_computes(
    recipe: str, prefer: Any, base: Path, export: Any
) -> None:
    run = prefer(recipe, {})

    done = export(Path(run.checkpoint()["path"]), base=base, engine=Engine.TRL)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    kept, made = load(recipe, run.checkpoint()["hf_path"]), load(recipe, done.output)
    assert type(made) is type(kept)
    torch.testing.assert_close(compute(made), compute(kept), atol=0, rtol=0)
    if recipe == "dpo":
        assert not torch.allclose(compute(made), compute(load(recipe, base)), atol=1e-2)
    else:
        assert compute(made).shape == (2, 1)


@pytest.mark.parametrize("recipe", ["dpo", "reward_model"])
def test_a_merged_adapter_computes_what_base_and_adapter_compute(
    recipe: str, prefer: Any, base: Path, export: Any
) -> None:
    run = prefer(recipe, LORA)
    checkpoint = Path(run.checkpoint()["path"])

    done = export(checkpoint, base=base, engine=Engine.TRL)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    assert not (done.output / "adapter_config.json").exists()
    expected = compute(with_adapter(recipe, base, checkpoint / "lora_adapter"))
    torch.testing.assert_close(compute(load(recipe, done.output)), expected, atol=1e-4, rtol=1e-4)
    if recipe == "dpo":
        assert not torch.allclose(expected, compute(load(recipe, base)), atol=1e-2)


@pytest.mark.parametrize("recipe", ["dpo", "reward_model"])
def test_an_adapter_alone_works_on_its_base(recipe: str, prefer: Any, base: Path, export: Any) -> None:
    checkpoint = Path(prefer(recipe, LORA).checkpoint()["path"])

    done = export(checkpoint, base=base, form="adapter", engine=Engine.TRL)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    assert not list(done.output.glob("model*.safetensors"))
    expected = compute(with_adapter(recipe, base, checkpoint / "lora_adapter"))
    made = compute(with_adapter(recipe, base, done.output))
    torch.testing.assert_close(made, expected, atol=0, rtol=0)
