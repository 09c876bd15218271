"""The gate that every change passes: checks in `./init.sh check`, tests in `./init.sh test`."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trellis_cli.output import err, out
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_cli.verify import find_false_claims

FRONTEND = REPOSITORY_ROOT / "frontend"
PACKAGES = (
    "contracts/trellis_contracts",
    "recipes/trellis_recipes",
    "factory/trellis_data",
    "backend/trellis_api",
    "workers/trellis_workers",
    "verl/trellis_train",
    "cli/trellis_cli",
)


@dataclass(frozen=True)
class Step:
    """One command of the gate."""

    name: str
    command: Sequence[str]
    cwd: Path = REPOSITORY_ROOT


def steps() -> list[Step]:
    """All checks, the quick ones first."""
    return [
        Step("ruff: lint", python_command("-m", "ruff", "check", ".")),
        Step("ruff: format", python_command("-m", "ruff", "format", "--check", ".")),
        Step("borders between packages", import_linter()),
        Step("locks", python_command("requirements/relock.py", "--check")),
        Step("documented settings", python_command("-m", "trellis_cli.documents", "configuration")),
        Step("documented recipes", python_command("-m", "trellis_cli.documents", "recipes")),
        Step("documented operators on data", python_command("-m", "trellis_cli.documents", "data")),
        Step("types: mypy strict", python_command("-m", "mypy", *PACKAGES)),
        Step("OpenAPI schema is fresh", python_command("-m", "trellis_cli.documents", "openapi")),
        Step("migrations match the models", python_command("-m", "trellis_cli.documents", "migrations")),
        Step("docker-compose.yml", python_command("-m", "trellis_cli.compose_check")),
        Step("front end: types are fresh, vue-tsc, ESLint", ["npm", "run", "--silent", "check"], FRONTEND),
    ]


def import_linter() -> list[str]:
    """import-linter has no module to run, and its script's first line breaks in paths with spaces."""
    return python_command("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")


def run_checks() -> bool:
    """Run all, show the output of those that fail, end with a summary."""
    failed = []
    for step in steps():
        started = time.monotonic()
        done = run(step, capture=True)
        took = time.monotonic() - started
        if done.returncode == 0:
            out.print(f"[green]ok[/green]     {step.name}  [dim]{took:.1f} s[/dim]")
            continue
        failed.append(step.name)
        out.print(f"[red]FAILED[/red] {step.name}  [dim]{took:.1f} s[/dim]")
        out.print(done.stdout + done.stderr, markup=False, highlight=False, soft_wrap=True)
    if failed:
        out.print(f"[red]{len(failed)} failed:[/red] {', '.join(failed)}")
    return not failed


def run(step: Step, *, capture: bool) -> "subprocess.CompletedProcess[str]":
    """Run one step."""
    executable = shutil.which(step.command[0]) or step.command[0]
    command = [executable, *step.command[1:]]
    try:
        return subprocess.run(command, cwd=step.cwd, capture_output=capture, text=True, check=False)  # noqa: S603
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", f"{step.command[0]}: {error.strerror}")


def run_tests(arguments: Sequence[str]) -> int:
    """pytest, vitest, and whether feature_list.json claims only what they showed; the first exit code not 0.

    Each folder of ``tests`` has a process of its own: Ray and Celery read their settings once a
    process, and what one folder's tests import shall not be what another's measure. With arguments,
    only pytest with them.
    """
    if arguments:
        return run(Step("pytest", python_command("-m", "pytest", *arguments)), capture=False).returncode
    suites = sorted(path for path in (REPOSITORY_ROOT / "tests").iterdir() if any(path.rglob("test_*.py")))
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [_run_suite(suite, report=Path(folder) / f"{suite.name}.xml") for suite in suites]
        false_claims = find_false_claims(sorted(Path(folder).glob("*.xml")))
    vitest = Step("vitest", ["npm", "run", "--silent", "test"], FRONTEND)
    outcomes.append(run(vitest, capture=False).returncode)
    if failed := [suite.name for suite, outcome in zip(suites, outcomes, strict=False) if outcome]:
        err.print(f"[red]failed:[/red] {', '.join(failed)}")
    if false_claims:
        err.print(f"[red]feature_list.json claims more than the tests show:[/red] {', '.join(false_claims)}")
    return next((outcome for outcome in outcomes if outcome), 1 if false_claims else 0)


def _run_suite(suite: Path, *, report: Path) -> int:
    command = python_command("-m", "pytest", str(suite.relative_to(REPOSITORY_ROOT)), f"--junitxml={report}")
    return run(Step(f"pytest {suite.name}", command), capture=False).returncode
