"""Finds lone surrogates, halves of characters that JSON can bring as ``\\ud83d`` and no file can keep."""

import json
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def find_surrogate(value: Any) -> str | None:
    """Return why a value cannot be written, in words for the person who brought it; None where it can."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    found = _SURROGATE.search(text)
    if found is None:
        return None
    return f"it contains half of a character (\\u{ord(found[0]):04x}), which is not valid Unicode"
