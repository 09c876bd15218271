"""Compares expressions in a child process (``timed_worker``)."""

from functools import lru_cache
from typing import Any


def answer(found: str, wanted: str) -> bool:
    """Tell whether two expressions are equal; SymPy is imported with the first."""
    from math_verify import verify

    parsed_wanted, parsed_found = _parse(wanted), _parse(found)
    # math-verify's own time limits need its caller's main thread to wait for a signal of their own.
    return bool(parsed_wanted and parsed_found and verify(parsed_wanted, parsed_found, timeout_seconds=None))


@lru_cache(maxsize=4096)
def _parse(text: str) -> list[Any]:
    """Parse the text; cached because parsing takes two thirds of a comparison and answers repeat."""
    from math_verify import parse

    return parse(f"${text.strip().strip('$')}$", parsing_timeout=None)
