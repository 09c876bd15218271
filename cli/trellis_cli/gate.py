"""The gate that every change passes: checks in `./init.sh check`, tests in `./init.sh test`."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from trellis_cli.output import err, out
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_cli.suites import SHARING
from trellis_cli.verify import find_false_claims

FRONTEND = REPOSITORY_ROOT / "frontend"
PACKAGES = (
    "contracts/trellis_contracts",
    "recipes/trellis_recipes",
    "factory/trellis_data",
    "evaluation/trellis_evaluation",
    "backend/trellis_api",
    "workers/trellis_workers",
    "verl/trellis_train",
    "cli/trellis_cli",
    "sdk/trellis",
)
#: Folders of tests in the order in which they begin, the longest first; the others follow, and vitest is the
#: last. What takes less than five minutes comes in the end, so that all lanes end together.
ORDER = ("e2e", "train", "proof", "cli", "workers", "backend", "data", "contracts")
#: As many as cores: a third lane gained minutes, and its neighbours met their limits of time.
LANES = 2


@dataclass(frozen=True)
class Step:
    """One command of the gate."""

    name: str
    command: Sequence[str]
    cwd: Path = REPOSITORY_ROOT
    #: Beside the caller's own.
    environment: Mapping[str, str] = field(default_factory=dict)


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
        done = run(step, output=subprocess.PIPE)
        took = time.monotonic() - started
        if done.returncode == 0:
            out.print(f"[green]ok[/green]     {step.name}  [dim]{took:.1f} s[/dim]")
            continue
        failed.append(step.name)
        out.print(f"[red]FAILED[/red] {step.name}  [dim]{took:.1f} s[/dim]")
        out.print(done.stdout, markup=False, highlight=False, soft_wrap=True)
    if failed:
        out.print(f"[red]{len(failed)} failed:[/red] {', '.join(failed)}")
    return not failed


def run(step: Step, *, output: IO[str] | int | None) -> "subprocess.CompletedProcess[str]":
    """Run one step with all that it prints going to ``output``; None leaves it to the terminal.

    What cannot be started has said so in ``stdout``.
    """
    executable = shutil.which(step.command[0]) or step.command[0]
    command = [executable, *step.command[1:]]
    errors = None if output is None else subprocess.STDOUT
    try:
        return subprocess.run(  # noqa: S603
            command,
            cwd=step.cwd,
            env={**os.environ, **step.environment},
            stdout=output,
            stderr=errors,
            text=True,
            check=False,
        )
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, f"{step.command[0]}: {error.strerror}")


def run_tests(arguments: Sequence[str]) -> int:
    """pytest, vitest, and whether feature_list.json claims only what they showed; 0 where all is well.

    Each folder of ``tests`` has a process of its own: Ray and Celery read their settings once a
    process, and what one folder's tests import shall not be what another's measure. Some run beside
    each other (``LANES``), and each shows its output when it ends. With arguments, only pytest with them.
    """
    if arguments:
        step = Step("pytest", python_command("-m", "pytest", *arguments), environment=SHARING)
        return run(step, output=None).returncode
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder)
        failed = run_side_by_side(plan_suites(reports), logs=reports)
        false_claims = find_false_claims(sorted(reports.glob("*.xml")))
    if failed:
        err.print(f"[red]failed:[/red] {', '.join(failed)}")
    if false_claims:
        err.print(f"[red]feature_list.json claims more than the tests show:[/red] {', '.join(false_claims)}")
    return 1 if failed or false_claims else 0


def plan_suites(reports: Path) -> list[Step]:
    """All suites in the order in which they begin; each of pytest's writes its JUnit report there."""
    folder = REPOSITORY_ROOT / "tests"
    suites = {path.name for path in folder.iterdir() if any(path.rglob("test_*.py"))}
    names = [*ORDER, *sorted(suites - set(ORDER))]
    vitest = Step("vitest", ["npm", "run", "--silent", "test"], FRONTEND)
    return [*(_pytest(name, reports) for name in names), vitest]


def _pytest(suite: str, reports: Path) -> Step:
    report = reports / f"{suite}.xml"
    command = python_command("-m", "pytest", f"tests/{suite}", f"--junitxml={report}")
    return Step(f"pytest {suite}", command, environment=SHARING)


def run_side_by_side(steps: Sequence[Step], *, logs: Path, lanes: int = LANES) -> list[str]:
    """Begin the steps in their order, so many at a time; names of those that failed."""
    lock = threading.Lock()

    def work(step: Step) -> bool:
        log = logs / f"{step.name.replace(' ', '-')}.log"
        started = time.monotonic()
        with log.open("w") as file:
            done = run(step, output=file)
        said = log.read_text(errors="replace") + (done.stdout or "")
        word = "[red]FAILED[/red]" if done.returncode else "[green]ok[/green]    "
        with lock:
            out.print(said, markup=False, highlight=False, soft_wrap=True)
            out.print(f"{word} {step.name}  [dim]{time.monotonic() - started:.0f} s[/dim]")
        return done.returncode == 0

    with ThreadPoolExecutor(lanes) as pool:
        passed = list(pool.map(work, steps))
    return sorted(step.name for step, is_good in zip(steps, passed, strict=True) if not is_good)
