"""Writes folders in Hugging Face format: weights in the base model's precision, and what belongs to them."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from verl.utils.transformers_compat import drop_tied_target_keys

from trellis_train.export.errors import CheckpointMismatch
from trellis_train.export.layout import CONFIG_FILE

INDEX_FILE = "model.safetensors.index.json"
GENERATION_CONFIG_FILE = "generation_config.json"
#: Of a checkpoint's folder, what makes the tokenizer, says how to generate, and how an encoder finds tools.
_COMPANION_PATTERNS = (
    "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model",
    "*.tiktoken", "chat_template*", "generation_config.json", "preprocessor_config.json",
    "processor_config.json", "video_preprocessor_config.json", "*.py",
    "retrieval.json", "tool_vectors.npy", "tool_names.json",
)  # fmt: skip
#: The names of types in the headers of safetensors files.
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_AUTO_CLASSES = (
    ("ForSequenceClassification", AutoModelForSequenceClassification),
    ("ForTokenClassification", AutoModelForTokenClassification),
    ("ForConditionalGeneration", AutoModelForImageTextToText),
    ("ForCausalLM", AutoModelForCausalLM),
    ("LMHeadModel", AutoModelForCausalLM),
    ("Model", AutoModel),  # without a head: an encoder
)


def choose_auto_class(config: Any) -> Any:
    """Return the auto class that loads the architecture in a configuration."""
    architecture = (config.architectures or [""])[0]
    return next((auto for ending, auto in _AUTO_CLASSES if ending in architecture), AutoModelForCausalLM)


def choose_dtype(*folders: Path | None) -> torch.dtype | None:
    """Return the first dtype in the configurations; the base model's comes first if available."""
    for folder in folders:
        if folder is None or not (folder / CONFIG_FILE).is_file():
            continue
        config = json.loads((folder / CONFIG_FILE).read_text())
        named = config.get("dtype") or config.get("torch_dtype")
        dtype = getattr(torch, str(named).removeprefix("torch."), None)
        if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
            return dtype
    return None


def cast(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Cast a weight to the wanted dtype; integers are unchanged."""
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def write_state(
    state: dict[str, torch.Tensor], *, config_folder: Path, output: Path, dtype: torch.dtype | None
) -> None:
    """Write a whole state as a model of the configuration in ``config_folder``."""
    config = AutoConfig.from_pretrained(config_folder)
    dtype = dtype or next(tensor.dtype for tensor in state.values() if tensor.is_floating_point())
    config.dtype = dtype
    with init_empty_weights():
        model = choose_auto_class(config).from_config(config, dtype=dtype)
    # As verl does it: memory is taken when it is written to, which it never is.
    model.to_empty(device="cpu")
    drop_tied_target_keys(state, model, config)
    _require_same_weights(state, model)
    for key in list(state):
        state[key] = cast(state[key], dtype)
    model.save_pretrained(output, state_dict=state)
    copy_companions(config_folder, output)


def copy_model(source: Path, output: Path, *, dtype: torch.dtype | None) -> None:
    """Copy a model's folder; weights of another precision are cast on the way.

    Copied, not linked: a resumed run may write the step's files again, in place. Every file of weights
    is read once: what it holds is known from its header.
    """
    output.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / CONFIG_FILE, output / CONFIG_FILE)
    copy_companions(source, output)
    counts: Counter[torch.dtype] = Counter()
    for path in sorted(source.glob("*.safetensors")):
        counts += _copy_weights(path, output, dtype)
    if (source / INDEX_FILE).is_file():
        index = json.loads((source / INDEX_FILE).read_text())
        size = sum(count * kind.itemsize for kind, count in counts.items())
        index["metadata"] = {**index.get("metadata", {}), "total_size": size}
        (output / INDEX_FILE).write_text(json.dumps(index, indent=2))
    floating = {kind: count for kind, count in counts.items() if kind.is_floating_point}
    if floating:  # the precision of most of the weights
        write_dtype(output, max(floating, key=lambda kind: floating[kind]))


def write_dtype(folder: Path, dtype: torch.dtype) -> None:
    """Let the configuration name the precision that the weights have."""
    config = json.loads((folder / CONFIG_FILE).read_text())
    config.pop("torch_dtype", None)
    config["dtype"] = str(dtype).removeprefix("torch.")
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")


def copy_companions(source: Path, output: Path, *, replaces: bool = True) -> None:
    """Copy tokenizer, chat template and generation settings, byte for byte."""
    output.mkdir(parents=True, exist_ok=True)
    for pattern in _COMPANION_PATTERNS:
        for path in source.glob(pattern):
            if path.is_file() and (replaces or not (output / path.name).exists()):
                shutil.copyfile(path, output / path.name)


def _copy_weights(path: Path, output: Path, dtype: torch.dtype | None) -> Counter[torch.dtype]:
    """Copy one file of weights; how many numbers of each type the copy holds."""
    metadata, found = _read_header(path)
    if dtype is None or all(kind == dtype for kind in found if kind.is_floating_point):
        shutil.copyfile(path, output / path.name)
        return found
    tensors = {key: cast(tensor, dtype).contiguous() for key, tensor in load_file(path).items()}
    save_file(tensors, output / path.name, metadata={"format": "pt", **metadata})
    counts: Counter[torch.dtype] = Counter()
    for tensor in tensors.values():
        counts[tensor.dtype] += tensor.numel()
    return counts


def _read_header(path: Path) -> tuple[dict[str, str], Counter[torch.dtype]]:
    """Read a file's metadata and its element count per dtype, without the weights."""
    counts: Counter[torch.dtype] = Counter()
    with safe_open(path, framework="pt") as file:
        for key in file.keys():  # noqa: SIM118 - not a mapping
            part = file.get_slice(key)
            name = part.get_dtype()
            if name not in _TYPES:
                raise CheckpointMismatch(f"'{key}' has dtype {name}, which cannot be exported.")
            counts[_TYPES[name]] += torch.Size(part.get_shape()).numel()
        return file.metadata() or {}, counts


def _require_same_weights(state: dict[str, torch.Tensor], model: Any) -> None:
    """Require every weight of the model, and no other, in its shape (tied ones once)."""
    wanted = dict(model.state_dict())
    unknown = sorted(set(state) - set(wanted))
    drop_tied_target_keys(wanted, model, model.config)
    missing = sorted(set(wanted) - set(state))
    if unknown or missing:
        what = f"has an unexpected '{unknown[0]}'" if unknown else f"is missing '{missing[0]}'"
        raise CheckpointMismatch(f"The checkpoint {what}: it does not match {type(model).__name__}.")
    for key, tensor in state.items():
        if key in wanted and tensor.shape != wanted[key].shape:
            raise CheckpointMismatch(
                f"'{key}' has shape {tuple(tensor.shape)}, but the model expects {tuple(wanted[key].shape)}."
            )
