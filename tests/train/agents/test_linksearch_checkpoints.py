"""What Link Search leaves beside verl's checkpoints: folders that transformers loads as they are."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trellis_testing.loadable_folders import load_folders
from trellis_train.agents.linksearch.checkpoints import write_checkpoint
from trellis_train.agents.starter import make_tokenizer, write_model
from trellis_train.export.errors import CheckpointIncomplete

if TYPE_CHECKING:
    import torch


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "model"
    write_model(folder, make_tokenizer(["find Ada in the database of profiles"] * 3, vocabulary=300), seed=0)
    return folder


def load(folder: Path) -> "dict[str, torch.Tensor]":
    """The weights that transformers finds in the folder; its tokenizer has a chat template."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert AutoTokenizer.from_pretrained(folder).chat_template
    model, told = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not told["missing_keys"]
    return dict(model.state_dict())


def write(folder: Path, source: Path, base: Path) -> Path:
    write_checkpoint(folder, source, base=base, step=3, params={"mode": "masked"}, best={"step": 2}, waited=1)
    return folder


def test_weights_in_several_files_are_all_there(base: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = tmp_path / "global_step_3"
    model = AutoModelForCausalLM.from_pretrained(base)
    with torch.no_grad():
        model.model.embed_tokens.weight += 1
    model.save_pretrained(source / "actor" / "huggingface", max_shard_size="100KB")
    AutoTokenizer.from_pretrained(base).save_pretrained(source / "actor" / "huggingface")

    folder = write(tmp_path / "checkpoints" / "checkpoint-3", source, base)

    assert load_folders(folder) == {"Link Search checkpoint"}
    assert len(list(folder.glob("*.safetensors"))) > 1
    saved = model.state_dict()
    assert all(torch.equal(weight, saved[name]) for name, weight in load(folder).items())
    state = json.loads((folder / "training_state.json").read_text())
    assert state == {
        "step": 3,
        "checkpoint": str(source),
        "best": {"step": 2},
        "evaluations_without_improvement": 1,
        "params": {"mode": "masked"},
    }


def test_an_adapter_is_loaded_with_its_base(base: Path, tmp_path: Path) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    source = tmp_path / "global_step_3"
    config = LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM", init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(
        source / "actor" / "lora_adapter"
    )

    folder = write(tmp_path / "checkpoints" / "final", source, base)

    assert load_folders(folder) == {"Link Search checkpoint with an adapter"}
    assert json.loads((folder / "config.json").read_text()) == json.loads((base / "config.json").read_text())
    learned = [weight for name, weight in load(folder).items() if "lora_B" in name]
    assert learned
    assert all(torch.any(weight != 0) for weight in learned)


def test_a_checkpoint_without_weights_leaves_no_folder_that_looks_like_a_model(
    base: Path, tmp_path: Path
) -> None:
    source = tmp_path / "global_step_3"
    (source / "actor" / "huggingface").mkdir(parents=True)
    (source / "actor" / "huggingface" / "config.json").write_bytes((base / "config.json").read_bytes())

    with pytest.raises(CheckpointIncomplete, match="contains no weights"):
        write(tmp_path / "final", source, base)

    assert not (tmp_path / "final").exists()
