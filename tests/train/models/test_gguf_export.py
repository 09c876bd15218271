"""A model folder becomes a GGUF file that gives the same answers."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trellis_contracts.dry_run import EXIT_BAD_REQUEST
from trellis_train.gguf_export import _SPLITS, UnsupportedModel, export, main
from trellis_train.starter.model import write_model

#: Largest difference of a log-probability, by how weights are stored.
TOLERANCE = {"f16": 2e-3, "q8_0": 5e-2, "q4_k_m": 0.5}
HAS_LLAMA_CPP = find_spec("cyllama") is not None
QWEN2 = next(expression for expression, name in _SPLITS.items() if name == "qwen2")


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf") / "starter"
    write_model(folder, seed=3)
    return folder


def tiny_llama(folder: Path, **changes: Any) -> Path:
    """A Llama whose queries and keys have to be interleaved, with the starter's tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from trellis_train.starter.model import make_tokenizer

    tokenizer = make_tokenizer()
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "rope_theta": 50_000.0,
        **changes,
    }
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def log_probabilities(model: Any, ids: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return torch.log_softmax(model(ids).logits.float(), dim=-1)


def largest_difference(folder: Path, file: Path, ids: torch.Tensor) -> float:
    original = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    loaded = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    return float((log_probabilities(original, ids) - log_probabilities(loaded, ids)).abs().max())


@pytest.mark.parametrize("kind", ["f16", "q8_0"])
def test_an_exported_file_gives_the_logits_of_its_model(starter: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"starter.{kind}.gguf"

    export(starter, file, kind, name="starter")

    ids = torch.arange(3, 67).reshape(2, 32)
    assert largest_difference(starter, file, ids) < TOLERANCE[kind]


@pytest.mark.skipif(not HAS_LLAMA_CPP, reason="needs llama.cpp (cyllama)")
def test_llama_cpp_makes_the_smallest_file_and_leaves_no_other(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path / "llama", hidden_size=256, intermediate_size=512)
    (tmp_path / "made").mkdir()
    file = tmp_path / "made" / "llama.q4_k_m.gguf"

    assert main([str(folder), str(file), "--type", "q4_k_m", "--name", "sums"]) == 0

    reader = gguf.GGUFReader(file)
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert (kinds["blk.0.attn_q.weight"], kinds["output_norm.weight"]) == ("Q4_K", "F32")
    assert reader.get_field("general.file_type").contents() == gguf.LlamaFileType.MOSTLY_Q4_K_M
    assert reader.get_field("general.name").contents() == "sums"
    assert largest_difference(folder, file, torch.arange(40).reshape(1, 40)) < TOLERANCE["q4_k_m"]
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.skipif(HAS_LLAMA_CPP, reason="llama.cpp is here")
def test_what_llama_cpp_would_make_is_refused_without_it(
    starter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(starter), str(tmp_path / "x.gguf"), "--type", "q4_k_m"]

    assert main(arguments) == EXIT_BAD_REQUEST
    assert "install the package cyllama" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_queries_and_keys_of_a_llama_are_interleaved_as_its_readers_expect(tmp_path: Path) -> None:
    folder = tiny_llama(tmp_path / "llama")

    export(folder, tmp_path / "llama.gguf", "f16", name="llama")

    assert largest_difference(folder, tmp_path / "llama.gguf", torch.arange(40).reshape(1, 40)) < 2e-3


def test_the_tokenizer_reads_text_as_before(starter: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(starter, tmp_path / "merging")
    document = json.loads((folder / "tokenizer.json").read_text())
    split = {"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated", "invert": False}
    document["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [split, {**document["pre_tokenizer"], "use_regex": False}],
    }
    size = len(document["model"]["vocab"]) + len(document["added_tokens"])
    document["model"]["merges"] = [["u", "s"], ["us", "e"]]
    for name, index in (("us", size - 5), ("use", size - 4)):  # in the place of bytes that UTF-8 never has
        spare = next(each for each, at in document["model"]["vocab"].items() if at == index)
        del document["model"]["vocab"][spare]
        document["model"]["vocab"][name] = index
    (folder / "tokenizer.json").write_text(json.dumps(document))

    export(folder, tmp_path / "a.gguf", "q8_0", name="starter")

    before = AutoTokenizer.from_pretrained(folder)
    after = AutoTokenizer.from_pretrained(tmp_path, gguf_file="a.gguf")
    talk = [{"role": "user", "content": "1+2= we'll use it"}]
    shown = before.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    assert after.apply_chat_template(talk, tokenize=False, add_generation_prompt=True) == shown
    ids = before.encode(shown, add_special_tokens=False)
    assert len(ids) < len(shown.encode())
    assert after.encode(shown, add_special_tokens=False) == ids
    assert gguf.GGUFReader(tmp_path / "a.gguf").get_field("tokenizer.ggml.pre").contents() == "qwen2"


def test_types_and_facts_stand_in_the_file(starter: Path, tmp_path: Path) -> None:
    progress = tmp_path / "progress.json"

    export(starter, tmp_path / "a.gguf", "q8_0", name="sums", progress=progress)

    reader = gguf.GGUFReader(tmp_path / "a.gguf")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert (kinds["token_embd.weight"], kinds["output_norm.weight"]) == ("Q8_0", "F32")
    assert "output.weight" not in kinds
    said = {key: reader.get_field(key).contents() for key in ("general.name", "tokenizer.ggml.pre")}
    assert said == {"general.name": "sums", "tokenizer.ggml.pre": "gpt-2"}
    told = json.loads(progress.read_text())
    assert told["done_bytes"] == told["total_bytes"] > 1_000_000
    assert not (tmp_path / "a.gguf.part").exists()


def test_what_cannot_be_exported_is_named(
    starter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads((starter / "config.json").read_text())
    for change, said in (
        ({"architectures": ["GptOssForCausalLM"]}, "does not support GptOssForCausalLM"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "RoPE scaling of type yarn"),
    ):
        folder = tmp_path / said[-5:]
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(UnsupportedModel, match=said):
            export(folder, tmp_path / "x.gguf", "f16", name="x")
    assert main([str(folder), str(tmp_path / "x.gguf")]) == EXIT_BAD_REQUEST
    assert "RoPE scaling of type yarn" in capsys.readouterr().err
    assert not (tmp_path / "x.gguf").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["f16", "q8_0"])
def test_a_pretrained_model_gives_the_same_answers(
    pretrained: Path, tmp_path: Path, kind: str, record_property: Any
) -> None:
    file = tmp_path / f"smollm2.{kind}.gguf"

    export(pretrained, file, kind, name="smollm2")

    tokenizer = AutoTokenizer.from_pretrained(pretrained)
    ids = torch.tensor([tokenizer.encode("The capital of France is Paris, and that of Italy is")])
    original = AutoModelForCausalLM.from_pretrained(pretrained, dtype=torch.float32)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=file.name, dtype=torch.float32)
    before, after = log_probabilities(original, ids), log_probabilities(loaded, ids)
    divergence = float((before.exp() * (before - after)).sum(-1).mean())
    record_property("divergence", divergence)
    assert divergence < {"f16": 1e-4, "q8_0": 1e-2}[kind]
    assert torch.equal(before.argmax(-1), after.argmax(-1))


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from trellis_testing.pretrained import DEFAULT, fetch

    return fetch(DEFAULT, tmp_path_factory.mktemp("pretrained"))


def test_an_export_that_breaks_leaves_nothing_behind(
    starter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_source: Any) -> None:
        raise OSError("the file cannot be read")

    monkeypatch.setattr("trellis_train.gguf_export._read", fail)

    with pytest.raises(OSError, match="cannot be read"):
        export(starter, tmp_path / "model.gguf", "q8_0", name="m")

    assert list(tmp_path.iterdir()) == []
