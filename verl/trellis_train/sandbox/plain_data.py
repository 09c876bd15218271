"""Python's literals as text and back: all that crosses between code under test and the tests of it.

Text that comes from a stranger's process decodes to values of built-in types and to nothing else, so
a result that lies about its equality, its length or its items has become what it is made of.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

#: JSON readers other than Python's keep no larger numbers; Python's refuses decimals of many digits.
_LARGEST_PLAIN = 2**53
_DEEPEST = 100


#: What stands for a value that is none of Python's literals: one of these kinds with its number.
Refer = Callable[[Any], dict[str, int]]
Resolve = Callable[[str, Any], Any]
_REFERENCES = ("object", "callable")


class NotPlain(ValueError):
    """A value that is made of something else than literals, or text that is not one of ours."""


def dump(value: Any, *, refer: Refer | None = None) -> str:
    """Serialize None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict as text.

    Subclasses and NumPy's scalars become their base. Everything else becomes what ``refer`` returns for
    it; without one, ``NotPlain``.

    >>> dump((1, {"a": 2.5}))
    '{"tuple": [1, {"dict": [["a", 2.5]]}]}'
    """
    return json.dumps(_encode(value, 0, refer))


def load(text: str, *, resolve: Resolve | None = None) -> Any:
    """Load a value from a text made by ``dump``; ``NotPlain`` for other texts.

    ``resolve`` gives what a reference with its kind and number stands for; without one there are none.

    >>> load('{"tuple": [1, {"dict": [["a", 2.5]]}]}')
    (1, {'a': 2.5})
    """
    try:
        return _decode(json.loads(text), resolve)
    except NotPlain:
        raise
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise NotPlain(f"not plain data ({type(error).__name__})") from None


def _encode(value: Any, depth: int, refer: Refer | None) -> Any:
    if depth > _DEEPEST:
        raise NotPlain(f"values nested deeper than {_DEEPEST} levels cannot be compared")
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
        return [_encode(item, depth + 1, refer) for item in list.__iter__(value)]
    if isinstance(value, dict):
        pairs = dict.items(value)
        return {
            "dict": [[_encode(key, depth + 1, refer), _encode(item, depth + 1, refer)] for key, item in pairs]
        }
    kind: Any
    for kind in (tuple, set, frozenset):
        if isinstance(value, kind):
            return {kind.__name__: [_encode(item, depth + 1, refer) for item in kind.__iter__(value)]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes(memoryview(value)).hex()}
    if isinstance(value, complex):
        pair = complex.__complex__(value)
        return {"complex": [pair.real, pair.imag]}
    scalar = _scalar_of(value)
    if scalar is not None:
        return _encode(scalar[0], depth + 1, refer)
    if refer is None:
        raise NotPlain(f"values of type {type(value).__name__} are not supported (plain data only)")
    return refer(value)


def _scalar_of(value: Any) -> tuple[Any] | None:
    """Return the Python value of a NumPy scalar as a 1-tuple; None for everything else."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return None
    return (value.item(),)


def _decode(value: Any, resolve: Resolve | None) -> Any:
    if isinstance(value, list):
        return [_decode(item, resolve) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise NotPlain("not plain data (an object without a kind)")
    ((kind, content),) = value.items()
    if kind == "int":
        return int(content, 16)
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "complex":
        return complex(*content)
    if kind == "dict":
        return {_decode(key, resolve): _decode(item, resolve) for key, item in content}
    if kind in _REFERENCES and resolve is not None:
        return resolve(kind, content)
    makers = {"tuple": tuple, "set": set, "frozenset": frozenset}
    if kind not in makers or not isinstance(content, list):
        raise NotPlain("not plain data (an unknown kind)")
    return makers[kind](_decode(item, resolve) for item in content)
