"""A GGUF file becomes an ordinary model folder."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer
from trellis_contracts.dry_run import EXIT_BAD_REQUEST
from trellis_testing.gguf_files import CONTEXT, write_gguf
from trellis_train.gguf_import import UnsupportedFile, convert

Q8_0 = gguf.GGMLQuantizationType.Q8_0


def read_weights(folder: Path) -> dict[str, Any]:
    model = AutoModelForCausalLM.from_pretrained(folder)
    return {name: value.float().numpy() for name, value in model.state_dict().items()}


def test_weights_in_full_precision_come_back_bit_by_bit(tmp_path: Path) -> None:
    weights = write_gguf(tmp_path / "tiny.gguf")

    parameters = convert(tmp_path / "tiny.gguf", tmp_path / "model")

    found = read_weights(tmp_path / "model")
    assert set(found) == set(weights)
    for name, values in weights.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    assert parameters == sum(values.size for values in weights.values())
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_quantised_weights_come_back_within_the_error_of_their_format(tmp_path: Path) -> None:
    weights = write_gguf(tmp_path / "tiny.gguf", quantisation=Q8_0)

    convert(tmp_path / "tiny.gguf", tmp_path / "model")

    found = read_weights(tmp_path / "model")
    for name, values in weights.items():
        scale = np.abs(values).max() / 127  # of a block, at most
        np.testing.assert_allclose(found[name], values, atol=scale, err_msg=name)


def test_the_tokenizer_ends_where_the_file_says(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf")

    convert(tmp_path / "tiny.gguf", tmp_path / "model")

    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert tokenizer.pad_token == "<|im_end|>"
    assert tokenizer.model_max_length == CONTEXT
    shown = tokenizer.apply_chat_template([{"role": "user", "content": "ab"}], tokenize=False)
    assert shown == "<|im_start|>user ab<|im_end|>"


def test_an_architecture_that_transformers_cannot_read_is_named(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", architecture="nonsense")

    with pytest.raises(UnsupportedFile, match="nonsense"):
        convert(tmp_path / "tiny.gguf", tmp_path / "model")

    assert not (tmp_path / "model").exists()


def test_a_quantisation_that_cannot_be_undone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf(tmp_path / "tiny.gguf", quantisation=Q8_0)
    monkeypatch.delitem(gguf.quants._type_traits, Q8_0)

    with pytest.raises(UnsupportedFile, match=r"uses .*Q8_0"):
        convert(tmp_path / "tiny.gguf", tmp_path / "model")


def test_the_command_says_what_is_wrong_with_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\x03\x00\x00\x00" + b"\xff" * 40)
    command = [sys.executable, "-m", "trellis_train.gguf_import"]

    ended = subprocess.run(
        [*command, str(tmp_path / "broken.gguf"), str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == EXIT_BAD_REQUEST
    assert "'broken.gguf' is not a readable GGUF file" in ended.stderr.splitlines()[-1]
