"""Parses Python source, one thread at a time.

CPython 3.11 counts the depth of syntax trees for all threads together: two that parse at once end with
"SystemError: AST constructor recursion depth mismatch" (https://github.com/python/cpython/issues/106905).
"""

import ast
from threading import Lock

_lock = Lock()


def parse_python(code: str) -> ast.Module:
    """Parse Python code into a syntax tree; raises the same errors as ``ast.parse``."""
    with _lock:
        return ast.parse(code)
