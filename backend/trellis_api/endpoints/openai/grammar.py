"""Bounds of JSON schemas that an engine turns into a grammar, which may take it very long otherwise."""

import json
from typing import Any

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16
#: Of counts in a schema: each unrolls into that many states.
MAX_COUNT = 1024
_COUNTS = frozenset(
    {
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    }
)
#: Regular expressions may take exponential time and space to compile.
_REFUSED = frozenset({"pattern", "patternProperties"})
#: Formats of strings that the engine's grammars know, as vLLM's ``STRING_SUPPORTED_FORMATS`` lists them.
FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "json-pointer",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
        "uuid",
    }
)
#: Keywords whose value maps names of a person's own to schemas.
_BY_NAME = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
#: Keywords whose value is data and no schema.
_DATA = frozenset({"const", "enum", "default", "examples", "required", "title", "description"})


def check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema; ``ValueError`` if it is too large or too deep, or contains unbounded parts."""
    if len(json.dumps(schema)) > MAX_BYTES:
        raise ValueError(f"the schema is larger than {MAX_BYTES} bytes")
    _check(schema, depth=0)
    return schema


def _check(value: Any, *, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"the schema is more than {MAX_DEPTH} levels deep")
    if isinstance(value, list):
        for each in value:
            _check(each, depth=depth + 1)
    elif isinstance(value, dict):
        for keyword, each in value.items():
            _check_keyword(keyword, each, depth=depth)


def _check_keyword(keyword: str, value: Any, *, depth: int) -> None:
    if keyword in _REFUSED:
        raise ValueError(f"the schema has '{keyword}', which is not supported")
    if keyword == "format" and not (isinstance(value, str) and value in FORMATS):
        raise ValueError(f"'format' must be one of {', '.join(sorted(FORMATS))}")
    if keyword == "$ref" and not (isinstance(value, str) and value.startswith("#")):
        raise ValueError("'$ref' points outside the schema")
    if keyword in _COUNTS and not (isinstance(value, int) and 0 <= value <= MAX_COUNT):
        raise ValueError(f"'{keyword}' must be a number from 0 to {MAX_COUNT}")
    if keyword in _BY_NAME and isinstance(value, dict):
        for each in value.values():
            _check(each, depth=depth + 1)
    elif keyword not in _DATA:
        _check(value, depth=depth + 1)
