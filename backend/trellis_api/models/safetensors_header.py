"""What a safetensors file holds, read from its header alone; no tensor is loaded and nothing is unpickled.

The format: 8 bytes with the length of a JSON header (little endian), the header,
then the tensors' bytes (https://huggingface.co/docs/safetensors).
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The limit of the reference implementation.
_MAX_HEADER_BYTES = 100_000_000
_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}


class DamagedWeights(Exception):
    """The file is no complete safetensors file; the message says why."""


@dataclass(frozen=True)
class WeightFile:
    """Parameters by type, and the names of the tensors."""

    parameters_by_dtype: dict[str, int]
    tensor_names: frozenset[str]


def read_header(path: Path) -> WeightFile:
    """Read and check the header; a file that was cut off is recognised by its length."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(_MAX_HEADER_BYTES, size - 8):
            raise DamagedWeights(f"{path.name} is not a complete safetensors file")
        data = file.read(length)
    try:
        header = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedWeights(f"the header of {path.name} is not JSON") from error
    if not isinstance(header, dict):
        raise DamagedWeights(f"the header of {path.name} is not an object")
    header.pop("__metadata__", None)
    counts: dict[str, int] = {}
    end = 0
    for name, tensor in header.items():
        dtype, count, tensor_end = _read_tensor(path.name, name, tensor)
        counts[dtype] = counts.get(dtype, 0) + count
        end = max(end, tensor_end)
    if size != 8 + length + end:
        raise DamagedWeights(f"{path.name} has {size} bytes, but its header describes {8 + length + end}")
    return WeightFile(counts, frozenset(header))


def _read_tensor(file_name: str, name: str, tensor: Any) -> tuple[str, int, int]:
    try:
        shape, (start, end) = tensor["shape"], tensor["data_offsets"]
        dtype = _DTYPES.get(tensor["dtype"], str(tensor["dtype"])[:32].lower())
        numbers = [*shape, start, end]
    except (TypeError, KeyError, ValueError) as error:
        raise DamagedWeights(f"the header of {file_name} describes '{name[:80]}' wrongly") from error
    if not all(type(number) is int and 0 <= number < 2**62 for number in numbers) or start > end:
        raise DamagedWeights(f"the header of {file_name} describes '{name[:80]}' wrongly")
    return dtype, math.prod(shape), end
