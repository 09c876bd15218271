"""Finds a symbol of an installed package in its source and hashes it, without importing the package."""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

#: How far imports and base classes are followed.
_MOST_STEPS = 12
_DIGITS = 16

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class SymbolNotFound(LookupError):
    """The installed packages have no such symbol in their source."""


@dataclass(frozen=True)
class Symbol:
    """Where a symbol is defined, and what it looks like there."""

    path: Path
    line: int
    signature: str
    node: Definition

    @property
    def place(self) -> str:
        """File and line for people."""
        return f"{self.path}:{self.line}"


def digest(symbols: Sequence[Symbol]) -> str:
    """Hash code, ignoring comments, docstrings, layout and differences between Python versions."""
    text = "\n".join(_write(symbol.node) for symbol in symbols)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def find_symbol(name: str) -> Symbol:
    """Find the definition of a dotted path, through imports and base classes. Raises ``SymbolNotFound``."""
    return _find(name, _MOST_STEPS)


def split_module(name: str) -> tuple[str, list[str]]:
    """Split a dotted path into its longest module and the remaining names. Raises ``SymbolNotFound``."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        if find_file(".".join(parts[:end])) is not None:
            return ".".join(parts[:end]), parts[end:]
    raise SymbolNotFound(f"there is no package {parts[0]}")


@lru_cache(maxsize=4096)
def find_file(module: str) -> Path | None:
    """Find the source file of a module without running any code of it or its packages."""
    head, *rest = module.split(".")
    # Not ``importlib.util.find_spec``: a package that was imported may have put another spec in its place.
    spec = PathFinder.find_spec(head)
    name = head
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def forget_sources() -> None:
    """Give the memory of parsed files back: a process that trains looks at them once."""
    _parse.cache_clear()


@lru_cache(maxsize=256)
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _find(name: str, steps: int) -> Symbol:
    if steps == 0:
        raise SymbolNotFound(f"{name} is imported in a circle")
    module, names = split_module(name)
    path = find_file(module)
    if path is None:  # split_module has found it
        raise SymbolNotFound(f"{module} has no source")
    body: Sequence[ast.stmt] = _parse(path).body
    found: Definition | None = None
    for place, part in enumerate(names):
        node = _look_up(body, part)
        if isinstance(node, ast.ImportFrom):
            return _find(".".join([_imported_name(node, part, module, path), *names[place + 1 :]]), steps - 1)
        if isinstance(node, ast.Import):
            alias = next(each for each in node.names if (each.asname or each.name) == part)
            return _find(".".join([alias.name, *names[place + 1 :]]), steps - 1)
        if node is None and isinstance(found, ast.ClassDef):
            return _find_in_bases(found, part, module, name, steps)
        if node is None:
            raise SymbolNotFound(f"{module} has no {'.'.join(names[: place + 1])}")
        found, body = node, node.body if isinstance(node, ast.ClassDef) else ()
    if found is None:
        raise SymbolNotFound(f"{name} is a module")
    return Symbol(path, found.lineno, _write_signature(found), found)


def _find_in_bases(owner: ast.ClassDef, part: str, module: str, name: str, steps: int) -> Symbol:
    for base in owner.bases:
        if isinstance(base, ast.Name | ast.Attribute):
            try:
                return _find(f"{module}.{ast.unparse(base)}.{part}", steps - 1)
            except SymbolNotFound:
                continue
    raise SymbolNotFound(f"{name}: {owner.name} and its bases have no {part}")


def _look_up(body: Sequence[ast.stmt], name: str) -> Definition | ast.Import | ast.ImportFrom | None:
    """Find the last statement that binds ``name``, also below ``if`` and ``try``."""
    found: Definition | ast.Import | ast.ImportFrom | None = None
    for node in _statements(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == name:
                found = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if any((each.asname or each.name) == name for each in node.names):
                found = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                found = node
    return found


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements(node.body)
            yield from _statements(node.orelse)
        elif isinstance(node, ast.Try):
            for part in (node.body, *(handler.body for handler in node.handlers), node.orelse):
                yield from _statements(part)


def _imported_name(node: ast.ImportFrom, name: str, module: str, path: Path) -> str:
    original = next(each.name for each in node.names if (each.asname or each.name) == name)
    if not node.level:
        return f"{node.module}.{original}"
    parts = module.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else []), original])


def _write_signature(node: Definition) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"({ast.unparse(node.args)})"
    if isinstance(node, ast.ClassDef):
        return f"class({', '.join(ast.unparse(base) for base in node.bases)})"
    return "variable"


def _write(node: ast.AST) -> str:
    """Serialize the tree as text. Empty fields are left out because newer Pythons have more of them."""
    fields = []
    for name, value in ast.iter_fields(node):
        if name in ("kind", "type_comment", "ctx") or value is None or value == []:
            continue
        if name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            value = _without_docstring(value)
        if isinstance(value, list):
            items = ",".join(_write(each) if isinstance(each, ast.AST) else repr(each) for each in value)
            fields.append(f"{name}=[{items}]")
        else:
            fields.append(f"{name}={_write(value) if isinstance(value, ast.AST) else repr(value)}")
    return f"{type(node).__name__}({','.join(fields)})"


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_text and isinstance(first.value.value, str) else body  # type: ignore[union-attr]
