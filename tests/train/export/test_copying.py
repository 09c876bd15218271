"""A folder of weights is copied: in one reading, in the precision that is wanted, with its index."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from trellis_train.export import writing

NAMES = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two files of weights, one of which also counts something in whole numbers."""
    folder = tmp_path / "source"
    folder.mkdir()
    parts = [{"a": torch.rand(3, 5)}, {"b": torch.rand(7), "count": torch.tensor([1, 2])}]
    for name, tensors in zip(NAMES, parts, strict=True):
        save_file(tensors, folder / name, metadata={"format": "pt", "who": "me"})
    index = {
        "metadata": {"total_size": 0, "kept": 1},
        "weight_map": {"a": NAMES[0], "b": NAMES[1], "count": NAMES[1]},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", "torch_dtype": "float64"}))
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The weight files that are read, one entry for each time."""
    found: list[str] = []

    def note(function: Any) -> Any:
        def read(path: Path, *arguments: Any) -> Any:
            if Path(path).suffix == ".safetensors":
                found.append(Path(path).name)
            return function(path, *arguments)

        return read

    monkeypatch.setattr(writing, "load_file", note(writing.load_file))
    monkeypatch.setattr(writing.shutil, "copyfile", note(writing.shutil.copyfile))
    return found


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.bfloat16])
def test_every_file_of_weights_is_read_once(
    source: Path, reads: list[str], tmp_path: Path, dtype: torch.dtype | None
) -> None:
    output = tmp_path / "output"

    writing.copy_model(source, output, dtype=dtype)

    assert reads == [*NAMES]
    wanted = dtype or torch.float32
    before = {key: each for name in NAMES for key, each in load_file(source / name).items()}
    after = {key: each for name in NAMES for key, each in load_file(output / name).items()}
    assert {key: each.dtype for key, each in after.items()} == {
        "a": wanted,
        "b": wanted,
        "count": torch.int64,
    }
    assert all(torch.equal(after[key], writing.cast(before[key], dtype)) for key in before)
    index = json.loads((output / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 22 * wanted.itemsize + 2 * 8, "kept": 1}
    config = json.loads((output / "config.json").read_text())
    assert config == {"model_type": "qwen2", "dtype": str(wanted).removeprefix("torch.")}
