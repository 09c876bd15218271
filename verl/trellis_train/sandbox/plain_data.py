"""Python's literals as text and back: all that crosses between code under test and the tests of it.

Text that comes from a stranger's process decodes to values of built-in types and to nothing else, so
a result that lies about its equality, its length or its items has become what it is made of.
"""

import json
import sys
from typing import Any

#: JSON readers other than Python's keep no larger numbers; Python's refuses decimals of many digits.
_LARGEST_PLAIN = 2**53
_DEEPEST = 100


class NotPlain(ValueError):
    """A value that is made of something else than literals, or text that is not one of ours."""


def dump(value: Any) -> str:
    """The value as text: None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict.

    Subclasses and NumPy's scalars become their base; ``NotPlain`` for everything else.

    >>> dump((1, {"a": 2.5}))
    '{"tuple": [1, {"dict": [["a", 2.5]]}]}'
    """
    return json.dumps(_encode(value, 0))


def load(text: str) -> Any:
    """The value that ``dump`` made the text of; ``NotPlain`` where it did not.

    >>> load('{"tuple": [1, {"dict": [["a", 2.5]]}]}')
    (1, {'a': 2.5})
    """
    try:
        return _decode(json.loads(text))
    except NotPlain:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise NotPlain(f"this is no plain data ({type(error).__name__})") from None


def _encode(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise NotPlain(f"values nested more than {_DEEPEST} deep cannot be compared")
    # Through the base's own methods: what a subclass overrides does not count.
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__int__(value)
        return number if abs(number) < _LARGEST_PLAIN else {"int": hex(number)}
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, list):
        return [_encode(item, depth + 1) for item in list.__iter__(value)]
    if isinstance(value, dict):
        pairs = dict.items(value)
        return {"dict": [[_encode(key, depth + 1), _encode(item, depth + 1)] for key, item in pairs]}
    kind: Any
    for kind in (tuple, set, frozenset):
        if isinstance(value, kind):
            return {kind.__name__: [_encode(item, depth + 1) for item in kind.__iter__(value)]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes(memoryview(value)).hex()}
    if isinstance(value, complex):
        pair = complex.__complex__(value)
        return {"complex": [pair.real, pair.imag]}
    return _encode(_scalar_of(value), depth + 1)


def _scalar_of(value: Any) -> Any:
    """What a scalar of NumPy stands for."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        raise NotPlain(f"{type(value).__name__} is no plain value")
    return value.item()


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise NotPlain("this is no plain data (an object without a kind)")
    ((kind, content),) = value.items()
    if kind == "int":
        return int(content, 16)
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "complex":
        return complex(*content)
    if kind == "dict":
        return {_decode(key): _decode(item) for key, item in content}
    makers = {"tuple": tuple, "set": set, "frozenset": frozenset}
    if kind not in makers or not isinstance(content, list):
        raise NotPlain("this is no plain data (an unknown kind)")
    return makers[kind](_decode(item) for item in content)
