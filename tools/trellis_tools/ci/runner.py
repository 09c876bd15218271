"""Suites and parts of the tests, as `[tool.trellis.tests]` of pyproject.toml lists them, and their commands.

A suite is a folder of ``tests`` with a process of its own: Ray and Celery read their settings once a process,
and the imports of one folder's tests must not change what another's measure.
The fast set is every suite without the tests whose mark says why they take long. A part is a named share of
all tests, run in full.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_contracts.spec import NICENESS_VARIABLE

from trellis_tools.ci.commands import Command, npm_command, pick

#: Factor on the timeouts of ``trellis_testing.waiting``.
PATIENCE_VARIABLE = "TRELLIS_TEST_PATIENCE"
#: Where tests/conftest.py appends how many tests a selection left out, by mark (JSON lines).
LEFT_OUT_VARIABLE = "TRELLIS_TEST_LEFT_OUT"
#: Lets suites share the cores. An OpenMP thread that spins while it waits takes the core from the one it
#: waits for, and Ray's workers, niced by default, starve beside busy tests.
SHARED_CORES: Mapping[str, str] = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
    "RAY_worker_niceness": "0",
    NICENESS_VARIABLE: "0",
    PATIENCE_VARIABLE: "2",
}
#: Why a test is not in the fast set.
REASONS = ("slow", "training", "browser", "faults")
#: ``smoke`` keeps one test of each kind in the fast set all the same.
LEFT_OUT = f"({' or '.join(REASONS)}) and not smoke"
FAST = f"not ({LEFT_OUT})"
#: pytest's exit status where a selection leaves no test of a suite.
NO_TESTS = 5
#: The dashboard's own tests, a suite beside pytest's.
FRONTEND = "frontend"


@dataclass(frozen=True)
class Part:
    """A named share of all tests."""

    name: str
    #: Files and folders of tests below the checkout.
    paths: tuple[str, ...]
    #: Wall clock on the reference machine beside one other part; the part is ended at its limit.
    limit_s: float
    #: Most memory that its processes take together.
    memory_gib: float = 6.0
    #: Packages whose code these tests run in other processes, so that no import shows it.
    runs: tuple[str, ...] = ()
    #: Files outside the packages that they read: glob patterns below the checkout.
    reads: tuple[str, ...] = ()


@cache
def read_configuration() -> dict[str, Any]:
    """Read the table ``[tool.trellis.tests]`` of pyproject.toml."""
    settings = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())
    found: dict[str, Any] = settings["tool"]["trellis"]["tests"]
    return found


def list_budgets() -> dict[str, float]:
    """Return the seconds that each suite of the fast set may take, in the order in which they start."""
    return {name: float(seconds) for name, seconds in read_configuration()["budgets"].items()}


def list_parts() -> dict[str, Part]:
    """Return all parts by name, in the order in which they start."""
    parts = {}
    for name, values in read_configuration()["parts"].items():
        parts[name] = Part(
            name,
            tuple(values["paths"]),
            values["limit_minutes"] * 60.0,
            runs=tuple(values.get("runs", ())),
            reads=tuple(values.get("reads", ())),
            **{key: float(values[key]) for key in ("memory_gib",) if key in values},
        )
    return parts


def choose_parts(names: Iterable[str]) -> list[Part]:
    """Choose the parts of these names; all of them without names.

    Raises:
        Problem: A name that no part has.
    """
    return pick(list_parts(), names, "part")


def pytest_command(name: str, tests: Iterable[str], report: Path, *options: str) -> Command:
    """Return the command that runs tests in one process and writes a JUnit report."""
    arguments = python_command("-m", "pytest", *tests, f"--junitxml={report}", *options)
    left_out = {LEFT_OUT_VARIABLE: str(report.with_suffix(".left-out"))}
    return Command(name, arguments, environment={**SHARED_CORES, **left_out})


def vitest_command(report: Path) -> Command:
    """Return the command that runs the dashboard's tests and writes a JUnit report."""
    reporters = ["--reporter=default", "--reporter=junit", f"--outputFile.junit={report}"]
    return Command(FRONTEND, npm_command("test", "--", *reporters))


def group_by_suite(tests: Iterable[str]) -> dict[str, list[str]]:
    """Group tests (``tests/cli/test_checks.py::test_it``, files, folders) by suite, each test once."""
    wanted = set(tests)
    suites: dict[str, list[str]] = {}
    for test in sorted(wanted):
        if not any(_contains(other, test) for other in wanted):
            suites.setdefault("/".join(test.partition("::")[0].split("/")[:2]), []).append(test)
    return suites


def _contains(place: str, test: str) -> bool:
    """Return whether ``place`` is a folder, file or class of ``test``, or the test without its parameters."""
    return test.startswith((f"{place}/", f"{place}::", f"{place}["))
