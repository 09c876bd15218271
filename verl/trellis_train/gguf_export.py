"""Exports a model folder to a GGUF file: ``python -m trellis_train.gguf_export FOLDER FILE --type q8_0``.

Names of tensors, quantisation and the format are those of llama.cpp's package ``gguf``; this module says
which keys a configuration becomes, and how llama.cpp knows the tokenizer. Weights are read, stored and
written one tensor after the other. Types that the package can't write are made by llama.cpp itself, of a
file with 16 bits: the optional package ``cyllama`` has it. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import argparse
import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from trellis_contracts.dry_run import EXIT_BAD_REQUEST
from trellis_contracts.parent_death import die_with
from trellis_contracts.transfers import PART_ENDING

Array = npt.NDArray[Any]
#: llama.cpp's architectures by the name in ``config.json``.
_ARCHITECTURES = {"LlamaForCausalLM": "LLAMA", "Qwen2ForCausalLM": "QWEN2", "Qwen3ForCausalLM": "QWEN3"}
#: Written by this module, and made by llama.cpp of a file with 16 bits.
_WRITTEN, _QUANTIZED = ("f16", "q8_0"), {"q4_k_m": "MOSTLY_Q4_K_M"}
TYPES = (*_WRITTEN, *_QUANTIZED)
#: How llama.cpp calls a way of cutting text before the merges, by the expression of ``tokenizer.json``.
_SPLITS = {
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+": "qwen2",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+": "llama-bpe",
}
_READ_BYTES = 1024**2
#: What the configuration has to say.
_REQUIRED = (
    *("hidden_size", "intermediate_size", "max_position_embeddings", "num_attention_heads"),
    *("num_hidden_layers", "rms_norm_eps", "vocab_size"),
)


class UnsupportedModel(Exception):
    """The model cannot be exported; the message is one sentence for people."""


@dataclass(frozen=True)
class Source:
    """A tensor of the model, where it lies, and what it becomes."""

    name: str
    file: Path
    shape: tuple[int, ...]
    target: str
    #: Heads of queries or keys that llama.cpp wants interleaved; 0 where there are none.
    heads: int


def export(folder: Path, file: Path, kind: str, *, name: str, progress: Path | None = None) -> None:
    """Write the file, which does not exist yet. Raises ``UnsupportedModel``."""
    if kind in _WRITTEN:
        _export(folder, file, kind, name=name, progress=progress)
        return
    quantize = _find_quantizer(kind)
    half, staging = (file.with_name(f"{file.name}{part}{PART_ENDING}") for part in (".f16", ""))
    try:
        _export(folder, half, "f16", name=name, progress=progress)
        quantize(half, staging)
        staging.replace(file)
    finally:
        half.unlink(missing_ok=True)
        staging.unlink(missing_ok=True)


def _find_quantizer(kind: str) -> Callable[[Path, Path], None]:
    """Return llama.cpp's own quantization to a type; ``UnsupportedModel`` where no package brings it."""
    if find_spec("cyllama") is None:
        raise UnsupportedModel(f"GGUF export to {kind} needs llama.cpp: install the package cyllama.")
    import gguf
    from cyllama.llama import llama_cpp

    options = llama_cpp.LlamaModelQuantizeParams()
    options.ftype = int(getattr(gguf.LlamaFileType, _QUANTIZED[kind]))
    options.nthread = len(os.sched_getaffinity(0))

    def quantize(half: Path, file: Path) -> None:
        try:
            llama_cpp.model_quantize(str(half), str(file), options)
        except RuntimeError as error:
            raise UnsupportedModel(f"llama.cpp can't quantize the model to {kind}: {error}.") from error

    return quantize


def _export(folder: Path, file: Path, kind: str, *, name: str, progress: Path | None) -> None:
    """Write a file whose weights are stored as the package ``gguf`` can store them."""
    import gguf

    config = _read_config(folder)
    architecture = getattr(gguf.MODEL_ARCH, _ARCHITECTURES[config["architectures"][0]])
    sources = list(_list_sources(folder, config, gguf.get_tensor_name_map(architecture, _layers(config))))
    staging = file.with_name(file.name + PART_ENDING)
    writer = gguf.GGUFWriter(staging, gguf.MODEL_ARCH_NAMES[architecture])
    try:
        with contextlib.closing(writer):
            _describe(writer, config, name=name, kind=kind)
            _add_tokenizer(writer, folder, config)
            planned = [(source, _choose_type(source, kind)) for source in sources]
            for source, stored in planned:
                shape, dtype = _lay_out(source, stored)
                size = int(np.prod(shape)) * dtype.itemsize
                writer.add_tensor_info(source.target, shape, dtype, size, stored)
            _write(writer, planned, progress)
        staging.replace(file)
    finally:
        staging.unlink(missing_ok=True)


def _write(writer: Any, planned: list[tuple[Source, Any]], progress: Path | None) -> None:
    import gguf

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    total = sum(int(np.prod(source.shape)) for source, _ in planned)
    done = 0
    for source, stored in planned:
        if progress is not None:
            _tell(progress, done, total, source.name)
        writer.write_tensor_data(gguf.quants.quantize(_read(source), stored))
        done += int(np.prod(source.shape))
    if progress is not None:
        _tell(progress, total, total, None)


def _tell(path: Path, done: int, total: int, file: str | None) -> None:
    """Report the weights written so far, in bytes of half precision; the file is replaced whole."""
    staging = path.with_suffix(".new")
    said = {"done_bytes": 2 * done, "total_bytes": 2 * total, "file": file}
    staging.write_text(json.dumps(said), "utf-8")
    staging.replace(path)


# -- configuration


def _read_config(folder: Path) -> dict[str, Any]:
    """Read the configuration; refuses models that llama.cpp would misinterpret."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise UnsupportedModel("The folder has no readable config.json.") from error
    found = (config.get("architectures") or ["unknown"])[0]
    if found not in _ARCHITECTURES:
        raise UnsupportedModel(
            f"GGUF export does not support {found}; it supports {', '.join(sorted(_ARCHITECTURES))}."
        )
    if missing := [key for key in _REQUIRED if key not in config]:
        raise UnsupportedModel(f"The configuration is missing {missing[0]}, which GGUF needs.")
    kind = _rope(config).get("rope_type", "default")
    if kind != "default":
        raise UnsupportedModel(f"GGUF export does not support RoPE scaling of type {kind}.")
    return dict(config)


def _rope(config: dict[str, Any]) -> dict[str, Any]:
    """Return the RoPE parameters, from the format of this or older versions of transformers."""
    scaling = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    scaling.setdefault("rope_type", scaling.get("type", "default"))
    scaling.setdefault("rope_theta", config.get("rope_theta", 10_000.0))
    return scaling


def _layers(config: dict[str, Any]) -> int:
    return int(config["num_hidden_layers"])


def _heads(config: dict[str, Any]) -> tuple[int, int]:
    """Return the number of heads for queries, and for keys and values."""
    queries = int(config["num_attention_heads"])
    return queries, int(config.get("num_key_value_heads") or queries)


def _head_size(config: dict[str, Any]) -> int:
    return int(config.get("head_dim") or int(config["hidden_size"]) // _heads(config)[0])


def _describe(writer: Any, config: dict[str, Any], *, name: str, kind: str) -> None:
    import gguf

    queries, keys = _heads(config)
    writer.add_name(name)
    writer.add_context_length(int(config["max_position_embeddings"]))
    writer.add_embedding_length(int(config["hidden_size"]))
    writer.add_block_count(_layers(config))
    writer.add_feed_forward_length(int(config["intermediate_size"]))
    writer.add_head_count(queries)
    writer.add_head_count_kv(keys)
    writer.add_key_length(_head_size(config))
    writer.add_value_length(_head_size(config))
    writer.add_layer_norm_rms_eps(float(config["rms_norm_eps"]))
    writer.add_rope_freq_base(float(_rope(config)["rope_theta"]))
    writer.add_rope_dimension_count(_head_size(config))
    writer.add_vocab_size(int(config["vocab_size"]))
    types = {"f16": gguf.LlamaFileType.MOSTLY_F16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
    writer.add_file_type(types[kind])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


# -- weights


def _list_sources(folder: Path, config: dict[str, Any], names: Any) -> Iterator[Source]:
    """Yield every tensor with its name in the file; a head tied to the embeddings is left out."""
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise UnsupportedModel("The folder has no safetensors weights.")
    queries, keys = _heads(config)
    is_llama = config["architectures"][0] == "LlamaForCausalLM"
    for file in files:
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - it is no mapping
                if name == "lm_head.weight" and config.get("tie_word_embeddings"):
                    continue
                target = names.get_name(name, try_suffixes=(".weight", ".bias"))
                if target is None:
                    raise UnsupportedModel(f"GGUF export does not support the tensor '{name}'.")
                heads = {"q_proj": queries, "k_proj": keys}.get(name.split(".")[-2], 0) if is_llama else 0
                shape = tuple(weights.get_slice(name).get_shape())
                yield Source(name, file, shape, target, heads)


def _choose_type(source: Source, kind: str) -> Any:
    """Choose llama.cpp's type: full precision for vectors, 16 bits for rows without whole blocks."""
    import gguf

    types = gguf.GGMLQuantizationType
    if len(source.shape) == 1:
        return types.F32
    block, _ = gguf.GGML_QUANT_SIZES[types.Q8_0]
    return types.Q8_0 if kind == "q8_0" and source.shape[-1] % block == 0 else types.F16


def _lay_out(source: Source, stored: Any) -> tuple[tuple[int, ...], Any]:
    """Return shape and type as they are in the file; blocks are counted in bytes."""
    import gguf

    plain = {gguf.GGMLQuantizationType.F32: np.float32, gguf.GGMLQuantizationType.F16: np.float16}
    if stored in plain:
        return source.shape, np.dtype(plain[stored])
    return tuple(gguf.quants.quant_shape_to_byte_shape(source.shape, stored)), np.dtype(np.uint8)


def _read(source: Source) -> Array:
    from safetensors import safe_open

    with safe_open(source.file, framework="pt") as weights:
        values: Array = weights.get_tensor(source.name).float().numpy()
    if source.heads:
        # The halves of each head's queries and keys are interleaved, as Llama's first weights had them.
        halves = values.reshape(source.heads, 2, values.shape[0] // source.heads // 2, *values.shape[1:])
        values = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))
    return values


# -- tokenizer


def _add_tokenizer(writer: Any, folder: Path, config: dict[str, Any]) -> None:
    """Add vocabulary, merges, special tokens and chat template."""
    import gguf

    try:
        document = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise UnsupportedModel("The folder has no readable tokenizer.json.") from error
    tokens, kinds = _list_tokens(document, int(config["vocab_size"]))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_name_split(document))
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    special = gguf.SpecialVocab(folder, load_merges=True, n_vocab=len(tokens))
    special.add_to_gguf(writer, quiet=True)


def _list_tokens(document: dict[str, Any], size: int) -> tuple[list[str], list[int]]:
    """List every id's token and kind; ids that the tokenizer does not use are marked as unused."""
    import gguf

    kinds = gguf.TokenType
    model = document["model"]
    is_bytes = "ByteLevel" in json.dumps([document.get("pre_tokenizer"), document.get("decoder")])
    if model.get("type") != "BPE" or not is_bytes:
        raise UnsupportedModel(f"GGUF export only supports BPE tokenizers, not {model.get('type')}.")
    tokens = [f"[PAD{index}]" for index in range(size)]
    found = [int(kinds.UNUSED)] * size
    for token, index in model["vocab"].items():
        if index < size:
            tokens[index], found[index] = token, int(kinds.NORMAL)
    for added in document.get("added_tokens", []):
        if added["id"] < size:
            kind = kinds.CONTROL if added["special"] else kinds.USER_DEFINED
            tokens[added["id"]], found[added["id"]] = added["content"], int(kind)
    return tokens, found


def _name_split(document: dict[str, Any]) -> str:
    """Return llama.cpp's name for the way in which text is split before the merges."""
    rule = document.get("pre_tokenizer") or {}
    parts = rule.get("pretokenizers", [rule])
    kinds = [part.get("type") for part in parts]
    if kinds == ["ByteLevel"] and (parts[0].get("use_regex", True) or not document["model"].get("merges")):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and parts[0].get("individual_digits"):
        return "smollm"
    if kinds == ["Split", "ByteLevel"]:
        expression = (parts[0].get("pattern") or {}).get("Regex")
        if expression in _SPLITS:
            return _SPLITS[expression]
    raise UnsupportedModel("GGUF export does not support this tokenizer's pre-tokenizer.")


def main(arguments: list[str]) -> int:
    """Export and print the file; the last line of standard error says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.gguf_export", description=__doc__)
    parser.add_argument("folder", type=Path, help="the model, in Hugging Face format")
    parser.add_argument("file", type=Path, help="file to write")
    parser.add_argument("--type", choices=TYPES, default="q8_0", help="how weights are stored")
    parser.add_argument("--name", default="model", help="written into the file")
    parser.add_argument("--progress", type=Path, help="file for the progress, as JSON")
    options = parser.parse_args(arguments)
    die_with(os.getppid())
    try:
        export(options.folder, options.file, options.type, name=options.name, progress=options.progress)
    except UnsupportedModel as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    digest = hashlib.sha256()
    with options.file.open("rb") as written:
        while piece := written.read(_READ_BYTES):
            digest.update(piece)
    made = {
        "file": options.file.name,
        "size_bytes": options.file.stat().st_size,
        "sha256": digest.hexdigest(),
    }
    print(json.dumps(made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
