"""Exact JSON: what is no JSON, stands twice or does not fit is an error, never another value."""

import json
import math
from typing import Any, NamedTuple

from trellis_data.reading.problems import MAX_ROW_BYTES

TOO_LONG = f"the row is longer than {MAX_ROW_BYTES // 1024 // 1024} MiB"
TOO_DEEP = "the value is nested too deeply"


class Unreadable(NamedTuple):
    """Why a text is no row."""

    code: str
    reason: str


class _DuplicateKey(ValueError):
    """An object has a key twice, so that one of the values would be lost."""


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON; use null")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _DuplicateKey(f"the key '{twice[:80]}' stands twice in one object")
    return made


DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite, object_pairs_hook=_object)


def explain(error: ValueError | RecursionError) -> Unreadable:
    """Explain why ``DECODER`` rejected a text."""
    if isinstance(error, RecursionError):
        return Unreadable("too_deep", TOO_DEEP)
    if isinstance(error, _DuplicateKey):
        return Unreadable("duplicate_key", str(error))
    if isinstance(error, json.JSONDecodeError):
        return Unreadable("not_json", f"not valid JSON: {error.msg} (character {error.colno})")
    return Unreadable("not_json", f"not valid JSON: {error}")


def name_kind(value: Any) -> str:
    """Name the kind of a value that is not a row."""
    names = {list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), "an object")


def decode_line(data: bytes, *, what: str = "the line") -> dict[str, Any] | Unreadable:
    """Parse the object in a line, or return why it has none."""
    try:
        text = data.decode().strip(" \t\r\n")
    except UnicodeDecodeError as error:
        where = f"byte 0x{data[error.start]:02x} at position {error.start + 1}"
        return Unreadable("bad_encoding", f"{what} is not in the encoding of the file ({where})")
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        return explain(error)
    if not isinstance(value, dict):
        return Unreadable("not_an_object", f"{what} is {name_kind(value)}, not an object")
    return value
