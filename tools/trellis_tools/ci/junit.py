"""What JUnit reports of pytest and vitest say: outcomes, seconds, skipped tests."""

import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One test of a report."""

    #: Dotted, as in ``tests.cli.test_checks.test_it[x]``.
    name: str
    seconds: float
    has_failed: bool
    #: Why it was skipped; None where it ran.
    skipped: str | None

    @property
    def has_passed(self) -> bool:
        """Whether it ran to its end without a failure."""
        return not self.has_failed and self.skipped is None


def read_cases(report: Path) -> list[Case]:
    """Read the tests in a report; none if the file is missing or incomplete."""
    root = _read(report)
    return [] if root is None else [_read_case(each) for each in root.iter("testcase")]


def _read(report: Path) -> ElementTree.Element | None:
    try:
        return ElementTree.parse(report).getroot()  # noqa: S314 - written by the test runner just now
    except (FileNotFoundError, ElementTree.ParseError):
        return None


def _read_case(element: ElementTree.Element) -> Case:
    skipped = element.find("skipped")
    return Case(
        name=f"{element.get('classname')}.{element.get('name')}",
        seconds=float(element.get("time") or 0),
        has_failed=any(element.find(tag) is not None for tag in ("failure", "error")),
        skipped=None if skipped is None else skipped.get("message") or "",
    )


def read_left_out(report: Path) -> Counter[str]:
    """Count the tests that the selection left out, by the responsible mark (written by tests/conftest.py)."""
    path = report.with_suffix(".left-out")
    counts: Counter[str] = Counter()
    if path.exists():
        for line in path.read_text().splitlines():
            counts.update(json.loads(line))
    return counts


def merge_reports(reports: Iterable[Path], target: Path) -> None:
    """Write the suites of several reports into one."""
    merged = ElementTree.Element("testsuites")
    for report in reports:
        if (root := _read(report)) is not None:
            merged.extend([root] if root.tag == "testsuite" else list(root))
    ElementTree.ElementTree(merged).write(target, encoding="utf-8", xml_declaration=True)
