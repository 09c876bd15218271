"""The report of a test run: a table, the slowest and the skipped tests, and one JUnit file."""

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trellis_cli.output import out, print_table

from trellis_tools.ci import junit
from trellis_tools.ci.commands import Outcome

SLOWEST = 10
_PRINTING = threading.Lock()


@dataclass(frozen=True)
class Row:
    """One suite or part in the report."""

    name: str
    has_passed: bool
    cases: list[junit.Case]
    left_out: Counter[str]
    seconds: float


def show(outcome: Outcome) -> None:
    """Print one line a command, its whole output after a failure; safe to call from several threads."""
    word = "[green]ok[/green]    " if outcome.has_passed else "[red]FAILED[/red]"
    with _PRINTING:
        if not outcome.has_passed:
            out.print(outcome.output, markup=False, highlight=False, soft_wrap=True)
        out.print(f"{word} {outcome.name}  [dim]{outcome.seconds:.0f} s[/dim]", highlight=False)


def read_row(outcome: Outcome, reports: list[Path]) -> Row:
    """Build the row of a suite that has just ended."""
    return make_row(outcome.name, outcome.has_passed, outcome.seconds, reports)


def make_row(name: str, has_passed: bool, seconds: float, reports: list[Path]) -> Row:
    """Build a row from the contents of the reports."""
    cases = [case for report in reports for case in junit.read_cases(report)]
    left_out: Counter[str] = Counter()
    for report in reports:
        left_out += junit.read_left_out(report)
    return Row(name, has_passed, cases, left_out, seconds)


def print_report(rows: list[Row], folder: Path, report: Path, seconds: float) -> None:
    """Print the table, the slowest and the skipped tests; merge the JUnit reports of a folder into one."""
    junit.merge_reports(sorted(folder.glob("*.xml")), report)
    cases = [case for row in rows for case in row.cases]
    print_table(
        ["suite", "", "tests", "failed", "skipped", "left out", "seconds"],
        [_describe(row) for row in rows],
    )
    out.print("\nslowest tests")
    for name, took in list_slowest(cases, SLOWEST):
        out.print(f"  {took:6.1f} s  {name}", markup=False, highlight=False, soft_wrap=True)
    skipped = [case for case in cases if case.skipped is not None]
    if skipped:
        out.print(f"\nskipped: {len(skipped)}")
        for case in skipped:
            out.print(f"  {case.name}: {case.skipped}", markup=False, highlight=False, soft_wrap=True)
    left_out = sum((row.left_out for row in rows), Counter[str]())
    if left_out:
        reasons = ", ".join(f"{count} {mark}" for mark, count in left_out.most_common())
        out.print(f"\nonly in `test --all`: {left_out.total()} tests ({reasons})", highlight=False)
    failed = sum(case.has_failed for case in cases)
    passed = sum(case.has_passed for case in cases)
    out.print(
        f"\nreport: {report}; {seconds:.0f} s in all",
        highlight=False,
        soft_wrap=True,
    )
    out.print(f"{passed} passed, {failed} failed, {len(skipped)} skipped", highlight=False)
    unfinished = [row.name for row in rows if not row.has_passed and not _count_failed(row)]
    if unfinished:
        out.print(f"[red]did not finish:[/red] {', '.join(unfinished)}", highlight=False, soft_wrap=True)


def _count_failed(row: Row) -> int:
    return sum(case.has_failed for case in row.cases)


def _describe(row: Row) -> list[str]:
    skipped = sum(case.skipped is not None for case in row.cases)
    counts = [len(row.cases), _count_failed(row), skipped, row.left_out.total()]
    outcome = "passed" if row.has_passed else "FAILED"
    return [row.name, outcome, *(str(count) if count else "" for count in counts), f"{row.seconds:.0f}"]


def list_slowest(cases: Iterable[junit.Case], count: int) -> list[tuple[str, float]]:
    """List the names and seconds of the slowest tests, the slowest first."""
    slowest = sorted(cases, key=lambda case: case.seconds, reverse=True)[:count]
    return [(case.name, case.seconds) for case in slowest]
