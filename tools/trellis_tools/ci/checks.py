"""`./init.sh check`: lint, types, borders, generated files, changes of engines, budgets of the tests."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from trellis_cli.output import out
from trellis_cli.services.platform import python_command

from trellis_tools.ci.commands import Command, npm_command, pick, run_side_by_side
from trellis_tools.ci.packages import ROOTS
from trellis_tools.ci.report import show

PACKAGES = tuple(f"{folder}/{package}" for package, folder in ROOTS.items())
#: A cache of its own: the options differ from those of the packages.
CALLS_IN_TESTS = ("--config-file", "tests/mypy.ini", "--cache-dir", ".mypy_cache/tests", "tests")


def list_checks() -> dict[str, Command]:
    """Return all checks by their short name, the longest first: two run at a time."""
    commands = {
        "types": ("types: mypy strict", python_command("-m", "mypy", *PACKAGES)),
        "calls": ("calls in tests: mypy", python_command("-m", "mypy", *CALLS_IN_TESTS)),
        "frontend": (
            "front end: types are fresh, vue-tsc, ESLint, Prettier",
            npm_command("check"),
        ),
        "lint": ("ruff: lint", python_command("-m", "ruff", "check", ".")),
        "format": ("ruff: format", python_command("-m", "ruff", "format", "--check", ".")),
        "imports": ("borders between packages", import_linter()),
        "locks": ("locks", python_command("requirements/relock.py", "--check")),
        "openapi": ("OpenAPI schema is fresh", document("openapi")),
        "sdk-types": ("types of the SDK", document("sdk-types")),
        "migrations": ("migrations match the models", document("migrations")),
        "configuration": ("documented settings", document("configuration")),
        "presets": ("sizes that presets name", document("preset-sizes")),
        "recipes": ("documented recipes", document("recipes")),
        "data": ("documented operators on data", document("data")),
        "compose": ("docker-compose.yml", python_command("-m", "trellis_tools.compose_check")),
        "engines": ("changes of the engines fit", python_command("-m", "trellis_train.compat")),
        "budgets": ("time budgets of the tests", python_command("-m", "trellis_tools.ci.budgets")),
    }
    return {key: Command(name, arguments) for key, (name, arguments) in commands.items()}


def document(what: str) -> list[str]:
    """Return the command that checks one generated file."""
    return python_command("-m", "trellis_tools.documents", what)


def import_linter() -> list[str]:
    """Return the command for import-linter: it has no module to run, and its script breaks on spaces."""
    return python_command("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")


def list_long_checks() -> dict[str, Command]:
    """Return the checks that run only when named: by hand, or at night."""
    return {"gpu-lock": Command("gpu.lock installs", python_command("-m", "trellis_tools.ci.gpu_lock"))}


def choose_checks(names: Sequence[str]) -> list[Command]:
    """Choose the checks of these names; without names, all but the long ones.

    Raises:
        Problem: A name that no check has.
    """
    return pick(list_checks() | (list_long_checks() if names else {}), names, "check")


def run_checks(names: Sequence[str] = ()) -> bool:
    """Run checks, two at a time; show the output of those that fail. True when all pass."""
    with tempfile.TemporaryDirectory() as logs:
        outcomes = run_side_by_side(choose_checks(names), logs=Path(logs), on_end=show)
    failed = [outcome.name for outcome in outcomes if not outcome.has_passed]
    if failed:
        out.print(f"[red]{len(failed)} failed:[/red] {', '.join(failed)}")
    return not failed
