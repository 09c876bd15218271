"""Writes values in Hydra's override grammar, so that they come out as they went in."""

import math
import re
from typing import Any

_BARE = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.\-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_STRINGS = {"null", "true", "false", "nan", "inf"}
#: Control characters that texts of several lines hold, such as a judge's template.
_OF_TEXTS = frozenset("\n\r\t")


class NotExpressible(ValueError):
    """The value cannot be handed to the engine literally."""


def override(key: str, value: Any, *, is_new: bool) -> str:
    """Return ``key=value``, or ``+key=value`` for a key that the engine's files do not list."""
    return f"{'+' if is_new else ''}{key}={text(value)}"


def text(value: Any) -> str:
    """Format a value in Hydra's grammar.

    Raises ``NotExpressible`` for strings with an interpolation (it would be
    resolved, and could read the environment) or with control characters, but for
    line breaks and tabs.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotExpressible("a number must be finite")
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(text(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)}:{text(item)}" for key, item in value.items()) + "}"
    raise NotExpressible(f"a value of type {type(value).__name__} cannot be a setting")


def _key(key: Any) -> str:
    """Check and return a key, because Hydra's grammar has no quoted keys."""
    if not isinstance(key, str) or not _NAME.fullmatch(key) or key.lower() in _NOT_STRINGS:
        raise NotExpressible(f"{key!r} cannot be the name of a setting")
    return key


def _string(value: str) -> str:
    if "${" in value:
        raise NotExpressible("'${' would be read as an interpolation")
    if any(_is_control(character) for character in value):
        raise NotExpressible("control characters are not allowed")
    if _BARE.fullmatch(value) and value.lower() not in _NOT_STRINGS:
        return value
    # Backslashes are literal except in a row before a quote, where each is doubled.
    escaped = re.sub(r"(\\*)'", lambda match: match.group(1) * 2 + r"\'", value)
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return "'" + escaped + "\\" * trailing + "'"


def _is_control(character: str) -> bool:
    return (ord(character) < 32 or ord(character) == 127) and character not in _OF_TEXTS
