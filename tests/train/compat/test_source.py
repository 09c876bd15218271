"""Symbols are found in source, and hashed by what they do."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from trellis_train.compat.source import SymbolNotFound, digest, find_symbol

MODULE = """
import json as plain
from .parts import Base, start as begin

if True:
    def guarded(a, *, b=1): return a
try:
    LIMIT = 3
except ImportError:
    LIMIT = 4

class Child(Base):
    size: int = 1
    def own(self): pass
"""
PARTS = '''
"""Parts."""
class Base:
    def inherited(self, x: int) -> int:
        return x
def start(): ...
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    name = f"changed_{abs(hash(request.node.name))}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('a package is not run to be looked at')\n")
    (folder / "module.py").write_text(MODULE)
    (folder / "parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.mark.parametrize(
    ("name", "signature", "file"),
    [
        ("module.guarded", "(a, *, b=1)", "module.py"),
        ("module.LIMIT", "variable", "module.py"),
        ("module.begin", "()", "parts.py"),
        ("module.Child", "class(Base)", "module.py"),
        ("module.Child.own", "(self)", "module.py"),
        ("module.Child.inherited", "(self, x: int)", "parts.py"),
    ],
)
def test_a_symbol_is_found_through_imports_and_base_classes(
    package: str, name: str, signature: str, file: str
) -> None:
    symbol = find_symbol(f"{package}.{name}")

    assert (symbol.signature, symbol.path.name) == (signature, file)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("module.gone", "has no gone"),
        ("module.Child.gone", "its bases have no gone"),
        ("missing.gone", "has no missing"),
    ],
)
def test_what_is_gone_is_named(package: str, name: str, said: str) -> None:
    with pytest.raises(SymbolNotFound, match=said):
        find_symbol(f"{package}.{name}")


def test_a_package_that_is_not_installed_has_no_symbols() -> None:
    with pytest.raises(SymbolNotFound, match="there is no package nowhere_to_be_found"):
        find_symbol("nowhere_to_be_found.x")


def hash_of(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> str:
    name = f"hashed_{abs(hash(code))}"
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    return digest([find_symbol(f"{name}.f")])


PLAIN = "def f(a, b=1):\n    return a + b\n"


@pytest.mark.parametrize(
    "code",
    [
        'def f(a, b=1):\n    """Adds."""\n    return a + b\n',
        "def f(a, b=1):  # adds\n    # two numbers\n    return (a\n            + b)\n",
        "import os\n\n\ndef f(\n    a,\n    b = 1,\n):\n    return a + b\n",
    ],
    ids=["a docstring", "comments", "layout"],
)
def test_what_changes_nothing_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    assert hash_of(tmp_path, monkeypatch, code) == hash_of(tmp_path, monkeypatch, PLAIN)


@pytest.mark.parametrize(
    "code",
    [
        "def f(a, b=2):\n    return a + b\n",
        "def f(a, b=1):\n    return a - b\n",
        "def f(a, b=1):\n    return a + b + 0\n",
        "import functools\n\n@functools.cache\ndef f(a, b=1):\n    return a + b\n",
        "async def f(a, b=1):\n    return a + b\n",
    ],
    ids=["a default", "an operation", "a term", "a decorator", "a coroutine"],
)
def test_what_changes_something_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    assert hash_of(tmp_path, monkeypatch, code) != hash_of(tmp_path, monkeypatch, PLAIN)


def test_a_package_that_was_imported_and_hides_its_files_is_found_all_the_same(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As transformers does, which puts a module that imports late in its own place.
    monkeypatch.setitem(sys.modules, package, ModuleType(package))

    assert find_symbol(f"{package}.module.guarded").signature == "(a, *, b=1)"
