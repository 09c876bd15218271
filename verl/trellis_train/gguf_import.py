"""Converts a GGUF file to a model folder: ``python -m trellis_train.gguf_import FILE FOLDER``.

Weights are dequantised once and written as safetensors, with configuration, tokenizer and chat
template from the file's metadata, by transformers' own GGUF loader. The result is an ordinary model
for every engine. https://huggingface.co/docs/transformers/gguf
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts.dry_run import EXIT_BAD_REQUEST
from trellis_contracts.parent_death import die_with

#: Above this size weights are written in bfloat16: the file then has a fifth of its precision at most, and
#: twice the bytes would have to be read at every start.
_FULL_PRECISION_PARAMETERS = 1_000_000_000
#: Key of the metadata by the tokenizer's attribute. transformers reads the special tokens from the
#: vocabulary's types and takes another end of sequence than the file names.
_SPECIAL_TOKENS = {
    "bos_token": "tokenizer.ggml.bos_token_id",
    "eos_token": "tokenizer.ggml.eos_token_id",
    "pad_token": "tokenizer.ggml.padding_token_id",
    "unk_token": "tokenizer.ggml.unknown_token_id",
}


class UnsupportedFile(Exception):
    """The file cannot be converted; the message is one sentence for people."""


def convert(file: Path, folder: Path) -> int:
    """Write the model of a GGUF file to a folder that does not exist yet; return its parameter count.

    Raises ``UnsupportedFile`` for files that are damaged, of another architecture, or quantised in a
    way that cannot be undone here.
    """
    metadata = _read_metadata(file)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    is_large = metadata.parameters > _FULL_PRECISION_PARAMETERS
    source: dict[str, Any] = {
        "pretrained_model_name_or_path": str(file.parent),
        "gguf_file": file.name,
        "local_files_only": True,
        "trust_remote_code": False,
    }
    with _explained():
        tokenizer = AutoTokenizer.from_pretrained(**source)
        model = AutoModelForCausalLM.from_pretrained(
            **source, dtype=torch.bfloat16 if is_large else torch.float32
        )
    for name, token_id in metadata.special_tokens.items():
        setattr(tokenizer, name, tokenizer.convert_ids_to_tokens(token_id))
    context = getattr(model.config, "max_position_embeddings", None)
    if context:
        tokenizer.model_max_length = context
    folder.mkdir(parents=True)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return int(model.num_parameters())


@dataclass(frozen=True)
class _Metadata:
    """What is read from the file before its weights are."""

    parameters: int
    #: Id by the tokenizer's attribute.
    special_tokens: dict[str, int]


def _read_metadata(file: Path) -> _Metadata:
    """Read parameter count and special tokens; refuses quantisations that cannot be undone."""
    from gguf import GGUFReader

    try:
        reader = GGUFReader(file)
    except Exception as error:  # the parser raises whatever damaged bytes lead to
        raise UnsupportedFile(f"'{file.name}' is not a readable GGUF file: {error}.") from error
    _require_known_types(reader, file.name)
    special = {}
    for name, key in _SPECIAL_TOKENS.items():
        field = reader.get_field(key)
        if field is not None:
            special[name] = int(field.contents())
    return _Metadata(sum(int(tensor.n_elements) for tensor in reader.tensors), special)


def _require_known_types(reader: Any, name: str) -> None:
    """Dequantise one row of each type that occurs."""
    from gguf.quants import dequantize

    first = {tensor.tensor_type: tensor for tensor in reversed(reader.tensors)}
    if not first:
        raise UnsupportedFile(f"'{name}' contains no weights.")
    unknown = []
    for kind, tensor in first.items():
        try:
            dequantize(tensor.data[:1], kind)
        except NotImplementedError:
            unknown.append(kind.name)
    if unknown:
        raise UnsupportedFile(
            f"'{name}' uses {', '.join(sorted(unknown))} quantization, which cannot be converted. Use a file "
            "with another quantization, such as Q4_K_M, Q8_0 or F16."
        )


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn what transformers raises for a file that it cannot read into one sentence."""
    try:
        yield
    except (ValueError, KeyError, NotImplementedError, IndexError, TypeError) as error:
        said = str(error).strip("'\" ").splitlines() or [type(error).__name__]
        raise UnsupportedFile(f"The file could not be converted: {said[0][:300]}") from error


def main(arguments: list[str]) -> int:
    """Convert and print the parameter count; the last line of standard error says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.gguf_import", description=__doc__)
    parser.add_argument("file", type=Path, help="the GGUF file")
    parser.add_argument("folder", type=Path, help="folder to write, which must not exist")
    options = parser.parse_args(arguments)
    die_with(os.getppid())
    try:
        print(convert(options.file, options.folder))
    except UnsupportedFile as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
