"""Checks JSON against schemas: here, or in a child (``timed_worker``) where patterns may take long."""

import json
from functools import lru_cache
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry

NO_JSON = object()


def parse_json(text: str) -> Any:
    """Parse the document, or return ``NO_JSON``."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # also of numbers with too many digits
        return NO_JSON


def answer(text: str, schema: str) -> bool:
    """Tell whether the text is JSON that fits the schema."""
    document = parse_json(text)
    return document is not NO_JSON and _validator(schema).is_valid(document)


def are_equal(document: Any, wanted: Any) -> bool:
    """Compare by JSON's own equality: 1 is 1.0, but not true."""
    return bool(Draft202012Validator({"const": wanted}).is_valid(document))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


@lru_cache(maxsize=16)
def _validator(schema: str) -> Validator:
    parsed = json.loads(schema)
    # An empty registry: references to other documents are not fetched from a network.
    return validator_for(parsed, default=Draft202012Validator)(parsed, registry=Registry())
