"""`./init.sh test --changed`: which parts of the tests a change can reach.

Imports are read from the code: those of the packages by grimp (import-linter's library), those of the tests
from their syntax trees. What no import shows is declared with the part: packages that its tests run in other
processes (``runs``) and files that they read (``reads``).
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.services.platform import REPOSITORY_ROOT

from trellis_tools.ci.packages import ROOTS
from trellis_tools.ci.results import git
from trellis_tools.ci.runner import Part, list_parts

#: The tests' own library; a change of it reaches what imports it.
SUPPORT = "trellis_testing"
#: A change of these reaches every part.
EVERYWHERE = ("requirements/*.lock", "tests/conftest.py", "pyproject.toml")


@dataclass
class Reach:
    """What a change can reach."""

    base: str
    files: list[str]
    #: Part name -> one reason, for the person who waits for it.
    parts: dict[str, str] = field(default_factory=dict)


def find_reach(base: str) -> Reach:
    """Find the parts that changes between a commit and this checkout's files can affect."""
    try:
        commit = git("rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}").strip()
    except Problem:
        raise Problem(f"{base} is not a commit of this checkout", exit_code=ExitCode.USAGE) from None
    tracked = git("diff", "--name-only", "-z", commit, "--").split("\0")[:-1]
    untracked = git("ls-files", "--others", "--exclude-standard", "-z").split("\0")[:-1]
    reach = Reach(commit, sorted({*tracked, *untracked}))
    changed = {module for file in reach.files if (module := name_module(file))}
    reached = changed | find_importers(changed)
    for part in list_parts().values():
        if reason := explain(part, reach.files, reached):
            reach.parts[part.name] = reason
    return reach


def explain(part: Part, files: Iterable[str], reached: set[str]) -> str | None:
    """Explain why a change affects a part; None if it does not."""
    for file in files:
        if any(fnmatch(file, pattern) for pattern in EVERYWHERE):
            return f"{file} is used everywhere"
        if any(file == path.partition("::")[0] or file.startswith(f"{path}/") for path in part.paths):
            return f"{file} is one of its tests"
        if any(fnmatch(file, pattern) for pattern in part.reads):
            return f"it reads {file}"
    for package in part.runs:
        if any(module == package or module.startswith(f"{package}.") for module in reached):
            return f"it runs {package}"
    for test in list_tests(part):
        if found := imports_of(test) & reached:
            return f"{test.relative_to(REPOSITORY_ROOT)} imports {min(found)}"
    return None


def name_module(file: str) -> str | None:
    """Return the module of a file in one of our packages; a data file counts as the package it is in."""
    path = Path(file)
    for package, folder in [*ROOTS.items(), (SUPPORT, "tests/support")]:
        if path.is_relative_to(f"{folder}/{package}"):
            parts = path.relative_to(folder).with_suffix("").parts
            while (
                len(parts) > 1
                and path.suffix != ".py"
                and not (REPOSITORY_ROOT / folder).joinpath(*parts, "__init__.py").exists()
            ):
                parts = parts[:-1]
            return ".".join(parts).removesuffix(".__init__")
    return None


def find_importers(modules: set[str]) -> set[str]:
    """Find every module of ours that imports one of these, directly or indirectly."""
    graph = _read_graph()
    found: set[str] = set()
    for module in modules & graph.modules:
        found |= graph.find_downstream_modules(module)
        # A data file or a package's own file: whatever lies in the package may read it.
        for inner in graph.find_descendants(module) if not _is_file(module) else ():
            found |= {inner} | graph.find_downstream_modules(inner)
    support = _read_support()
    pending = [name for name, used in support.items() if used & (modules | found)]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [other for other, used in support.items() if name in used]
    return found


def _is_file(module: str) -> bool:
    folder = REPOSITORY_ROOT / ROOTS[module.partition(".")[0]]
    return folder.joinpath(*module.split(".")).with_suffix(".py").exists()


@cache
def _read_graph() -> Any:
    import grimp

    return grimp.build_graph(*ROOTS, cache_dir=str(REPOSITORY_ROOT / ".import_linter_cache"))


@cache
def _read_support() -> dict[str, set[str]]:
    folder = REPOSITORY_ROOT / "tests" / "support"
    files = (folder / SUPPORT).rglob("*.py")
    return {".".join(file.relative_to(folder).with_suffix("").parts): imports_of(file) for file in files}


def list_tests(part: Part) -> list[Path]:
    """List a part's test files and the conftest files that apply to them."""
    files: set[Path] = set()
    for name in part.paths:
        path = REPOSITORY_ROOT / name.partition("::")[0]
        files |= set(path.rglob("*.py")) if path.is_dir() else {path}
        files |= {each / "conftest.py" for each in path.parents if (each / "conftest.py").exists()}
    return sorted(files)


@cache
def imports_of(file: Path) -> set[str]:
    """Return every module of ours that a file imports, with the packages that contain it."""
    return {name for name in list_imports(file) if name.partition(".")[0] in {*ROOTS, SUPPORT}}


def list_imports(file: Path) -> set[str]:
    """List modules that a file imports absolutely, also in functions; `from a import b` gives a and a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found
