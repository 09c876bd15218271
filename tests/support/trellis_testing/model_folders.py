"""Model folders, small enough to write in a test."""

import json
from pathlib import Path
from typing import Any

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "max_position_embeddings": 512,
    "vocab_size": 100,
}


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int]]]) -> None:
    """Write zeros of these types and shapes."""
    widths = {"F32": 4, "BF16": 2, "F16": 2, "I64": 8}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        size = widths[dtype]
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    data = json.dumps(header).encode()
    path.write_bytes(len(data).to_bytes(8, "little") + data + bytes(end))


def write_model_folder(folder: Path, **config: Any) -> Path:
    """Write a complete model into a new folder: 10,010 parameters, with a chat template."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    tensors = {"embed.weight": ("BF16", [100, 100]), "norm.weight": ("F32", [10])}
    write_safetensors(folder / "model.safetensors", tensors)
    return folder
