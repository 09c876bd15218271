"""A model folder is checked without being loaded, and what is wrong with it is said."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trellis_api.models import fingerprint
from trellis_api.models.inspection import (
    ModelFacts,
    OutsideRoot,
    UnusableFolder,
    inspect_folder,
    resolve_folder,
)
from trellis_api.models.safetensors_header import DamagedWeights, read_header

WriteModel = Callable[..., Path]
WriteWeights = Callable[[Path, dict[str, tuple[str, list[int]]]], None]


def inspect(folder: Path) -> ModelFacts:
    return inspect_folder(folder, root=folder.parent)


def test_facts_are_read_from_configuration_and_header(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")

    facts = inspect(folder)

    assert facts.architecture == "LlamaForCausalLM"
    assert (facts.parameter_count, facts.dtype) == (10_010, "bfloat16")
    assert (facts.context_length, facts.vocabulary_size) == (512, 100)
    assert facts.size_bytes == sum(path.stat().st_size for path in folder.iterdir())
    assert (facts.has_chat_template, facts.warnings) == (True, [])


def test_shards_are_counted_together(
    tmp_path: Path, write_model: WriteModel, write_weights: WriteWeights
) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    write_weights(folder / "model-1.safetensors", {"a": ("F32", [3, 4])})
    write_weights(folder / "model-2.safetensors", {"b": ("F32", [5])})
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    assert inspect(folder).parameter_count == 17


def test_a_missing_chat_template_is_a_warning(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "tokenizer_config.json").unlink()

    facts = inspect(folder)

    assert not facts.has_chat_template
    assert [warning["code"] for warning in facts.warnings] == ["chat_template_missing"]


def test_a_template_in_a_file_of_its_own_counts(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "tokenizer_config.json").unlink()
    (folder / "chat_template.jinja").write_text("{{ messages }}")

    assert inspect(folder).has_chat_template


def test_code_in_the_folder_is_a_warning(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m", auto_map={"AutoModel": "modeling.Model"})

    assert [warning["code"] for warning in inspect(folder).warnings] == ["custom_code"]


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _write(name: str, content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return write


def _truncate(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])


def _only_pickles(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _only_adapter(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


HEADER = b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}'


@pytest.mark.parametrize(
    ("damage", "code", "part"),
    [
        (_remove("config.json"), "config_missing", "no config.json"),
        (_only_adapter, "config_missing", "merge it into its base model"),
        (_write("config.json", b"{"), "config_invalid", "not valid JSON"),
        (_write("config.json", b"[]"), "config_invalid", "not a JSON object"),
        (_write("config.json", b"{}"), "config_invalid", "neither architectures nor model_type"),
        (_write("config.json", b"[" * 100_000), "config_invalid", "not valid JSON"),
        (_remove("tokenizer.json"), "tokenizer_missing", "no tokenizer"),
        (_write("tokenizer_config.json", b"no"), "tokenizer_invalid", "not valid JSON"),
        (_remove("model.safetensors"), "weights_missing", "no safetensors"),
        (_only_pickles, "weights_missing", "can execute code"),
        (_truncate, "weights_damaged", "header describes"),
        (_write("model.safetensors", b""), "weights_damaged", "not a complete"),
        (_write("model.safetensors", b"\xff" * 100), "weights_damaged", "not a complete"),
        (_write("model.safetensors", (4).to_bytes(8, "little") + b"junk"), "weights_damaged", "not JSON"),
        (
            _write("model.safetensors", len(HEADER).to_bytes(8, "little") + HEADER + bytes(4)),
            "weights_damaged",
            "describes 'a' wrongly",
        ),
        (
            _write("model.safetensors.index.json", b'{"weight_map": {"a": "../../secret"}}'),
            "weights_missing",
            "which is not there",
        ),
        (_write("model.safetensors.index.json", b'{"weight_map": 5}'), "weights_missing", "lists no files"),
        (_fifo, "special_file", "not a regular file"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(
    tmp_path: Path, write_model: WriteModel, damage: Callable[[Path], None], code: str, part: str
) -> None:
    folder = write_model(tmp_path / "m")
    damage(folder)

    with pytest.raises(UnusableFolder) as caught:
        inspect(folder)

    assert caught.value.code == code
    assert part in caught.value.message


def test_a_tensor_in_two_files_is_refused(
    tmp_path: Path, write_model: WriteModel, write_weights: WriteWeights
) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    for name in ("one.safetensors", "two.safetensors"):
        write_weights(folder / name, {"a": ("F32", [1])})

    with pytest.raises(UnusableFolder, match="Two files contain"):
        inspect(folder)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "a"]), inner, max_size=3)
        ),
        max_leaves=10,
    ),
    rest=st.binary(max_size=20),
)
def test_no_header_whatsoever_breaks_the_reader(tmp_path: Path, header: Any, rest: bytes) -> None:
    path = tmp_path / "x.safetensors"
    data = json.dumps(header).encode()
    path.write_bytes(len(data).to_bytes(8, "little") + data + rest)

    try:
        found = read_header(path)
    except DamagedWeights:
        return
    assert all(count >= 0 for count in found.parameters_by_dtype.values())


@pytest.mark.parametrize(
    "path", ["../outside", "models/../../outside", "link", "/etc", "models/loop/../../../.."]
)
def test_paths_out_of_the_root_are_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / "models" / "loop").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(OutsideRoot):
        resolve_folder(root, path)


@pytest.mark.parametrize("path", ["nowhere", "x" * 5000, "loop", "file"])
def test_paths_that_are_no_folder_are_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()

    with pytest.raises(UnusableFolder) as caught:
        resolve_folder(tmp_path, path)

    assert caught.value.code == "folder_missing"


def test_a_link_out_of_the_root_inside_the_folder_is_refused(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "root" / "m")
    (tmp_path / "secret").write_text("secret")
    (folder / "vocab.txt").symlink_to(tmp_path / "secret")

    with pytest.raises(OutsideRoot, match=r"vocab\.txt"):
        inspect_folder(folder, root=tmp_path / "root")


def test_links_within_the_root_are_followed(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").rename(tmp_path / "blob")
    (folder / "model.safetensors").symlink_to(tmp_path / "blob")

    assert inspect(folder).parameter_count == 10_010


def test_the_hash_depends_on_content_and_names_alone(tmp_path: Path, write_model: WriteModel) -> None:
    first, second = write_model(tmp_path / "a"), write_model(tmp_path / "b")
    same = inspect(first).sha256 == inspect(second).sha256

    (second / "tokenizer.json").rename(second / "tokenizer.model")

    assert same
    assert inspect(first).sha256 != inspect(second).sha256


def test_hidden_files_do_not_change_the_hash(tmp_path: Path, write_model: WriteModel) -> None:
    folder = write_model(tmp_path / "m")
    before = inspect(folder).sha256

    (folder / ".cache").mkdir()
    (folder / ".cache" / "note").touch()

    assert inspect(folder).sha256 == before


def test_a_large_folder_is_sampled_and_still_told_apart(
    tmp_path: Path, write_model: WriteModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "m")
    weights = folder / "model.safetensors"
    monkeypatch.setattr(fingerprint, "MAX_CONTENT_BYTES", 1000)
    monkeypatch.setattr(fingerprint, "SAMPLED_FILE_BYTES", 1000)
    before = inspect(folder)

    content = bytearray(weights.read_bytes())
    content[-1] = 7
    weights.write_bytes(content)

    assert before.sha256_kind == "sampled"
    assert inspect(folder).sha256 != before.sha256
