"""Checkpoints of real runs, written as models by the engine and loaded as any user would."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trellis_contracts.spec import EXIT_STOPPED, EXIT_SUCCEEDED
from trellis_train.supervise.failure_causes import judge

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]
TOKENS = torch.arange(3, 35).reshape(2, 16)


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model.eval()(TOKENS).logits
    return found


def load(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def trained_state(checkpoint: Path) -> dict[str, torch.Tensor]:
    """The policy's weights as the trainer saved them."""
    state = torch.load(checkpoint / "model_world_size_1_rank_0.pt", map_location="cpu", weights_only=False)
    return {key: getattr(tensor, "_local_tensor", tensor) for key, tensor in state.items()}


def without_weights(checkpoint: Path, target: Path) -> Path:
    """A checkpoint that holds shards only."""
    shutil.copytree(checkpoint, target)
    for file in target.rglob("*.safetensors"):
        file.unlink()
    return target


def test_a_merged_adapter_computes_what_base_and_adapter_compute(with_adapter: Any, export: Any) -> None:
    import peft

    done = export(with_adapter.checkpoint, base=with_adapter.base)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    # The policy itself, put together from the trainer's own weights.
    model = load(with_adapter.base)
    untrained = logits(model)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    policy = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=12, target_modules=targets))
    policy.load_state_dict(trained_state(with_adapter.checkpoint))
    expected = logits(policy)
    made = logits(load(done.output))
    print(f"largest difference {float((made - expected).abs().max()):.2e}")
    torch.testing.assert_close(made, expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(made, untrained, atol=1e-2)
    assert not (done.output / "adapter_config.json").exists()


def test_an_adapter_alone_works_on_its_base(with_adapter: Any, export: Any) -> None:
    import peft

    done = export(with_adapter.checkpoint, base=with_adapter.base, form="adapter")

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    config = json.loads((done.output / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (4, 12)
    assert config["base_model_name_or_path"] == str(with_adapter.base)
    assert not (done.output / "model.safetensors").exists()
    on_base = peft.PeftModel.from_pretrained(load(with_adapter.base), done.output)
    state = trained_state(with_adapter.checkpoint)
    for key, tensor in load_file(done.output / "adapter_model.safetensors").items():
        torch.testing.assert_close(tensor, state[key.replace(".weight", ".default.weight")], atol=0, rtol=0)
    assert not torch.allclose(logits(on_base), logits(load(with_adapter.base)), atol=1e-2)


def test_shards_alone_become_the_model_that_was_trained(whole: Any, export: Any, tmp_path: Path) -> None:
    shards = without_weights(whole.checkpoint, tmp_path / "global_step_3")

    done = export(shards, base=whole.base)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    assert done.phases()[-1] == ("finished", 4)
    weights = load_file(done.output / "model.safetensors")
    state = trained_state(whole.checkpoint)
    assert {key for key in state if key != "lm_head.weight"} == set(weights)
    for key, tensor in weights.items():
        torch.testing.assert_close(tensor, state[key], atol=0, rtol=0)  # no cast on the way


def test_a_folder_in_hugging_face_format_is_taken_as_it_is(whole: Any, export: Any) -> None:
    done = export(whole.checkpoint, base=whole.base)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    made = load_file(done.output / "model.safetensors")
    kept = load_file(whole.checkpoint / "huggingface" / "model.safetensors")
    assert set(made) == set(kept)
    assert all(torch.equal(made[key], kept[key]) for key in made)
    # A resumed run writes its files in place: the model must not share them.
    assert (done.output / "model.safetensors").stat().st_nlink == 1


def test_tokenizer_template_and_generation_settings_come_along(whole: Any, export: Any) -> None:
    done = export(whole.checkpoint, base=whole.base)

    before = AutoTokenizer.from_pretrained(whole.base)
    after = AutoTokenizer.from_pretrained(done.output)
    turns = [{"role": "user", "content": "1 + 2 = ?"}]
    assert after.apply_chat_template(turns, tokenize=False) == before.apply_chat_template(
        turns, tokenize=False
    )
    assert after("1 + 2").input_ids == before("1 + 2").input_ids
    settings = "generation_config.json"
    assert (done.output / settings).read_text() == (whole.checkpoint / "huggingface" / settings).read_text()


@pytest.mark.parametrize("has_folder", [True, False])
def test_the_precision_is_that_of_the_base_model(
    has_folder: bool, whole: Any, export: Any, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    shutil.copytree(whole.base, base)
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    source = whole.checkpoint if has_folder else without_weights(whole.checkpoint, tmp_path / "global_step_3")

    done = export(source, base=base)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    weights = load_file(done.output / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}
    assert json.loads((done.output / "config.json").read_text())["dtype"] == "bfloat16"


def test_whole_weights_outlive_their_base_model(whole: Any, export: Any) -> None:
    done = export(whole.checkpoint, base=None)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    assert torch.isfinite(logits(load(done.output))).all()


def lose_the_shard(checkpoint: Path) -> None:
    (checkpoint / "model_world_size_1_rank_0.pt").unlink()


def cut_the_shard(checkpoint: Path) -> None:
    file = checkpoint / "model_world_size_1_rank_0.pt"
    file.write_bytes(file.read_bytes()[:5000])


def break_the_weights(checkpoint: Path) -> None:
    folder = checkpoint / "huggingface"
    state = {key: tensor for key, tensor in trained_state(checkpoint).items() if key != "lm_head.weight"}
    state["model.norm.weight"] = torch.full_like(state["model.norm.weight"], float("nan"))
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lose_the_shard, "export_incomplete"),
        (cut_the_shard, "export_incomplete"),
        (break_the_weights, "export_invalid"),
    ],
)
def test_a_damaged_checkpoint_leaves_nothing_and_says_why(
    damage: Callable[[Path], None], cause: str, whole: Any, export: Any, tmp_path: Path
) -> None:
    checkpoint = without_weights(whole.checkpoint, tmp_path / "global_step_3")
    damage(checkpoint)

    done = export(checkpoint, base=whole.base)

    verdict = judge(done.exit_code, done.log.splitlines()[-50:])
    assert (verdict.outcome, verdict.cause) == ("failed", cause), done.log[-3000:]
    assert not done.output.exists()
    assert list(done.output.parent.iterdir()) == []


def test_a_stopped_export_leaves_nothing(whole: Any, export: Any) -> None:
    done = export(whole.checkpoint, base=whole.base, is_stopped=True)

    assert done.exit_code == EXIT_STOPPED, done.log
    assert not done.output.exists()


def test_what_an_attempt_that_died_has_left_is_replaced(whole: Any, export: Any, tmp_path: Path) -> None:
    for name in ("mdl_made", ".mdl_made.partial"):
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / "half").write_text("left by an attempt that was killed")

    done = export(whole.checkpoint, base=whole.base)

    assert done.exit_code == EXIT_SUCCEEDED, done.log
    assert sorted(path.name for path in done.output.parent.iterdir()) == ["mdl_made"]
    assert not (done.output / "half").exists()
