"""Checks the arguments of calls against the schemas of tools, which strangers write both.

No address or file that a reference names is opened, and patterns match in time linear in the text: what would
take longer (lookarounds, backreferences) is refused where a schema is read.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs

_MAX_MESSAGE = 500
#: Of a compiled pattern, as in the operator ``json_schema``: its size times the text is the time it takes.
_MAX_PATTERN_BYTES = 1_000_000


class BadSchema(ValueError):
    """A schema cannot be used; says why."""


def check_schema(parameters: Any) -> None:
    """Raise ``BadSchema`` where arguments could not be checked against the schema."""
    _validator(_write(parameters))


def find_argument_fault(
    parameters: Mapping[str, Any], arguments: Any, *, most: int = _MAX_MESSAGE
) -> str | None:
    """Return a sentence for the model on what is wrong with a call's arguments; None if nothing is."""
    try:
        faults = list(_validator(_write(parameters)).iter_errors(arguments))
    except BadSchema as error:
        return f"the tool's schema cannot be used: {error}"[:most]
    except (ValueError, RecursionError) as error:
        return f"they cannot be checked: {error}"[:most]
    if not faults:
        return None
    first = min(faults, key=lambda fault: str(list(fault.instance_path)))
    place = ".".join(map(str, first.instance_path))
    return _shorten(f"{place}: {first.message}" if place else first.message, most)


def plain_numbers(value: Any) -> Any:
    """Replace integral floats by integers (5.0 by 5): JSON Schema treats them as the same integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: plain_numbers(item) for key, item in value.items()}
    return [plain_numbers(item) for item in value] if isinstance(value, list) else value


def _shorten(text: str, most: int) -> str:
    """Leave the middle out where it is too long: a message ends with what is wrong with its value."""
    begin = (most - 3) // 2
    return text if len(text) <= most else f"{text[:begin]}...{text[len(text) - (most - 3 - begin) :]}"


def _write(parameters: Any) -> str:
    try:
        return json.dumps(parameters)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadSchema(f"it is not JSON ({error})") from None


@lru_cache(maxsize=2048)
def _validator(schema: str) -> Any:
    try:
        return jsonschema_rs.Draft202012Validator(
            json.loads(schema),
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_MAX_PATTERN_BYTES),
        )
    except jsonschema_rs.ValidationError as error:
        raise BadSchema(_explain(error)) from None
    except (ValueError, RecursionError) as error:
        raise BadSchema(str(error).splitlines()[0][:200]) from None


def _explain(error: jsonschema_rs.ValidationError) -> str:
    place = ".".join(map(str, error.instance_path))
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):
        return (
            f"{place}: {error.message[:200]} that can be used; patterns must be short and match in linear"
            " time, without lookarounds and backreferences"
        )
    return f"{place}: {error.message[:200]}" if place else error.message[:200]
