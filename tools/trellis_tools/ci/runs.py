"""`./init.sh test`: the fast set, what a change can reach, or all tests in parts."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.markup import escape
from trellis_cli.output import duration, err, out, print_table
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command

from trellis_tools.ci import budgets, features, results
from trellis_tools.ci.changed import find_reach
from trellis_tools.ci.commands import LANES, Command, Outcome, run, run_side_by_side
from trellis_tools.ci.lanes import bound_seconds, measure_room, run_in_lanes
from trellis_tools.ci.report import Row, list_slowest, make_row, print_report, read_row, show
from trellis_tools.ci.runner import (
    FAST,
    FRONTEND,
    LEFT_OUT,
    NO_TESTS,
    SHARED_CORES,
    Part,
    choose_parts,
    group_by_suite,
    list_budgets,
    list_parts,
    pytest_command,
    vitest_command,
)
from trellis_tools.proof import REPORT_VARIABLE, print_proofs, read_report


def run_pytest(arguments: Sequence[str]) -> int:
    """Hand the arguments to pytest, with the suites' environment; its exit code."""
    command = python_command("-m", "pytest", *arguments)
    return subprocess.run(  # noqa: S603
        command, cwd=REPOSITORY_ROOT, env={**os.environ, **SHARED_CORES}, check=False
    ).returncode


# -- the fast set --------------------------------------------------------------------------


def run_fast() -> bool:
    """Run the fast set, two suites at a time; True when all is well.

    Also fails when feature_list.json claims a feature whose tests are gone or failed. Seconds go to
    ``.test-results/fast``, where the check ``budgets`` finds them.
    """
    folder = _make_empty(results.FAST_FOLDER)
    commands = plan_fast(folder)
    budget = _sum_budgets(budgets.measure_slowdown())
    err.print(f"fast set: {len(commands)} suites, budget {budget}", highlight=False)
    started = time.monotonic()
    with budgets.SpeedWatch() as speed:
        outcomes = run_side_by_side(commands, logs=folder, on_end=show)
    slowdown = speed.slowdown
    rows = [read_row(outcome, [folder / f"{outcome.name}.xml"]) for outcome in outcomes]
    claims = features.find_refuted([case for row in rows for case in row.cases])
    suites = {row.name: budgets.SuiteTime(row.seconds, list_slowest(row.cases, 5)) for row in rows}
    budgets.record(suites, slowdown)
    print_report(rows, folder, results.FOLDER / "fast.xml", time.monotonic() - started)
    for overrun in budgets.find_overruns(suites, slowdown):
        out.print(f"[yellow]over budget:[/yellow] {escape(str(overrun))}", highlight=False, soft_wrap=True)
    return _judge(outcomes, claims)


def plan_fast(reports: Path) -> list[Command]:
    """Return one command per suite of the fast set, in the order in which they start."""
    return [
        vitest_command(reports / f"{name}.xml")
        if name == FRONTEND
        else pytest_command(name, [f"tests/{name}"], reports / f"{name}.xml", "-m", FAST)
        for name in list_budgets()
    ]


def _sum_budgets(slowdown: float) -> str:
    total = duration(sum(list_budgets().values()) * slowdown / LANES)
    return f"{total}, machine {slowdown:.2f} times slower than the reference" if slowdown > 1 else total


# -- all tests, in parts -------------------------------------------------------------------


def run_complete(names: Sequence[str], *, is_fresh: bool) -> bool:
    """Run parts in full, two at a time; parts that passed on these very files are not run again.

    Checks all of feature_list.json when every part is done, and remembers the commit when all passed.
    """
    tree = results.identify_tree()
    folder = results.COMPLETE_FOLDER / tree
    folder.mkdir(parents=True, exist_ok=True)
    slowdown = budgets.measure_slowdown()
    parts = choose_parts(names)
    if is_fresh:
        for part in parts:
            _forget(folder, part.name)
    pending = [part for part in parts if not _has_passed(folder, part.name)]
    for part in parts:
        if part not in pending:
            err.print(f"[green]passed before[/green] {part.name}  [dim]--fresh runs it again[/dim]")
    started = time.monotonic()
    run_parts(pending, folder, slowdown)
    rows = [_read_part(folder, part) for part in list_parts().values() if _is_recorded(folder, part.name)]
    print_report(rows, folder, results.FOLDER / "all.xml", time.monotonic() - started)
    if figures := [each for row in rows for each in read_report(_locate_figures(folder, row.name))]:
        out.print("\nmeasured by the proofs")
        print_proofs(figures)
    are_passed = all(_has_passed(folder, part.name) for part in parts)
    if not all(_has_passed(folder, name) for name in list_parts()):
        return are_passed
    claims = features.find_unproven([case for row in rows for case in row.cases])
    if claims:
        err.print(f"[red]feature_list.json marks failing features as passing:[/red] {', '.join(claims)}")
    elif "+" not in tree:
        results.note_passed(tree)
    return are_passed and not claims


def run_parts(parts: Iterable[Part], folder: Path, slowdown: float, selection: str | None = None) -> bool:
    """Run parts, two at a time where memory allows; True when all passed.

    Each outcome is kept as soon as its part ends.
    """
    return all(
        run_in_lanes(
            [*parts],
            lambda part: run_part(part, folder, slowdown, selection),
            lanes=LANES,
            room_gib=measure_room(),
        )
    )


def run_part(part: Part, folder: Path, slowdown: float, selection: str | None = None) -> bool:
    """Run the suites of a part one after the other, within the limit of the part."""
    started = time.monotonic()
    limit_s = part.limit_s * slowdown
    outcomes = []
    figures = _locate_figures(folder, part.name)
    figures.unlink(missing_ok=True)
    for command in plan_part(part, folder, selection):
        left_s = max(1.0, started + limit_s - time.monotonic())
        environment = {**command.environment, REPORT_VARIABLE: str(figures)}
        outcome = run(
            replace(command, timeout_s=left_s, environment=environment),
            folder / f"{command.name.replace(' ', '.')}.log",
        )
        show(outcome)
        outcomes.append(outcome)
    has_passed = all(outcome.has_passed for outcome in outcomes)
    record = {"has_passed": has_passed, "seconds": time.monotonic() - started}
    results.write_json(folder / f"{part.name}.json", record)
    return has_passed


def plan_part(part: Part, folder: Path, selection: str | None = None) -> list[Command]:
    """Return a part's commands: one per suite, and vitest if the part includes the dashboard's tests.

    A selection is an expression of pytest's marks; vitest runs only without one.
    """
    options = ["-m", selection] if selection else []
    commands = []
    for suite, tests in group_by_suite(part.paths).items():
        name = f"{part.name} {suite.rpartition('/')[2]}"
        report = folder / f"{name.replace(' ', '.')}.xml"
        if suite.startswith("tests/"):
            command = pytest_command(name, tests, report, *options)
            # A suite may have nothing that is selected; without a selection no tests are a mistake.
            commands.append(replace(command, accepted=(0, NO_TESTS)) if selection else command)
        elif not selection:
            commands.append(replace(vitest_command(report), name=name))
    return commands


def _forget(folder: Path, name: str) -> None:
    for path in (folder / f"{name}.json", *folder.glob(f"{name}.*.xml")):
        path.unlink(missing_ok=True)


def _locate_figures(folder: Path, name: str) -> Path:
    """Return the file that a part's proofs add what they measured to."""
    return folder / f"{name}.proofs.jsonl"


def _is_recorded(folder: Path, name: str) -> bool:
    return (folder / f"{name}.json").exists()


def _has_passed(folder: Path, name: str) -> bool:
    record = results.read_json(folder / f"{name}.json")
    return record is not None and bool(record["has_passed"])


def _read_part(folder: Path, part: Part) -> Row:
    record = results.read_json(folder / f"{part.name}.json")
    reports = sorted(folder.glob(f"{part.name}.*.xml"))
    return make_row(part.name, bool(record["has_passed"]), record["seconds"], reports)


def list_parts_of_all() -> None:
    """Print the parts with their limits, memory and paths."""
    rows = [
        [part.name, f"{part.limit_s / 60:.0f} min", f"{part.memory_gib:.0f} GiB", " ".join(part.paths)]
        for part in choose_parts([])
    ]
    print_table(["part", "limit", "memory", "tests"], rows)


# -- what a change reaches -----------------------------------------------------------------


def run_changed(base: str | None) -> bool:
    """Run the fast set, then the rest of every part that the change since ``base`` can reach."""
    reach = find_reach(base or results.find_base())
    err.print(f"{len(reach.files)} files differ from {reach.base[:12]}", highlight=False)
    for name, reason in reach.parts.items():
        err.print(f"  {name}: {escape(reason)}", highlight=False)
    parts = choose_parts(reach.parts) if reach.parts else []
    # If all take their whole limits: a part that is faster may let others run in another order, and later.
    limits = bound_seconds(parts, lanes=LANES, room_gib=measure_room())
    err.print(
        f"the fast set, then {len(parts)} of {len(list_parts())} parts, "
        f"about {duration(limits)} if all reach their limits",
        highlight=False,
    )
    is_fast_passed = run_fast()
    if not reach.parts:
        return is_fast_passed
    folder = _make_empty(results.FOLDER / "changed")
    started = time.monotonic()
    are_passed = run_parts(parts, folder, budgets.measure_slowdown(), LEFT_OUT)
    print_report(
        [_read_part(folder, part) for part in parts if _is_recorded(folder, part.name)],
        folder,
        results.FOLDER / "changed.xml",
        time.monotonic() - started,
    )
    return is_fast_passed and are_passed


def _judge(outcomes: Iterable[Outcome], claims: Sequence[str]) -> bool:
    failed = [outcome.name for outcome in outcomes if not outcome.has_passed]
    if failed:
        err.print(f"[red]failed:[/red] {', '.join(failed)}")
    if claims:
        err.print(
            "[red]feature_list.json lists features whose tests are missing or failed:[/red] "
            + ", ".join(claims)
        )
    return not failed and not claims


def _make_empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
