"""Compares each entry with the installed engines: version, source, signature."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Literal

from packaging.specifiers import SpecifierSet

from trellis_train.compat.change import DISTRIBUTIONS, Change, EngineMoved
from trellis_train.compat.records import Record, read_records
from trellis_train.compat.source import SymbolNotFound, digest, find_symbol, forget_sources

#: Targets with commas between, or ``all``: what has moved runs all the same, at the risk of who sets it.
ACCEPT_VARIABLE = "TRELLIS_ACCEPT_MOVED_ENGINES"
#: ``absent``: the engine is not installed here, so that nothing of it runs.
State = Literal["ok", "accepted", "moved", "gone", "other_version", "absent"]
_ADVICE = (
    "`trellis engines compat` shows all that moved, docs/upgrading.md what to do. "
    f"{ACCEPT_VARIABLE}={{target}} runs it unchecked."
)


@dataclass(frozen=True)
class Finding:
    """What was found of one entry."""

    change: Change
    state: State
    #: One sentence; empty where all is as it was.
    problem: str = ""
    installed: str = ""
    found: Record | None = None
    #: File and line.
    place: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the change must not be installed."""
        return self.state in ("moved", "gone", "other_version")


@cache
def find_version(package: str) -> str | None:
    """Return the installed version of a package, or None if it is not installed."""
    for name in DISTRIBUTIONS.get(package, (package,)):
        try:
            # Not ``version``: that is one of the symbols that are changed.
            return distribution(name).version
        except PackageNotFoundError:
            continue
    return None


def check(entry: Change) -> Finding:
    """Compare one entry with what is installed."""
    installed = find_version(entry.package)
    if installed is None:
        return Finding(entry, "absent")
    state: State
    found: Record | None
    try:
        symbols = [find_symbol(name) for name in entry.read_symbols]
    except SymbolNotFound as error:
        problem, state, found, place = f"{error}", "gone", None, ""
    else:
        found = Record(digest(symbols), symbols[0].signature)
        problem, state = _compare(entry, installed, found)
        place = symbols[0].place
    if state in ("moved", "other_version") and _is_accepted(entry):
        state = "accepted"
    return Finding(entry, state, problem, installed, found, place)


def _compare(entry: Change, installed: str, found: Record) -> tuple[str, State]:
    known = read_records().get(entry.target)
    if known is None:
        return "nobody has recorded what it looked like", "moved"
    if found.signature != known.signature:
        return f"its signature was {known.signature} and is {found.signature}", "moved"
    if found.source != known.source:
        return f"its source was {known.source} and is {found.source}", "moved"
    # Local parts of versions, such as +cpu, say how it was built.
    if not SpecifierSet(entry.version_range).contains(installed.partition("+")[0], prereleases=True):
        return f"{entry.package} {installed} is not {entry.version_range}", "other_version"
    return "", "ok"


def check_all(entries: Iterable[Change]) -> list[Finding]:
    """Compare all of them."""
    findings = [check(entry) for entry in entries]
    forget_sources()
    return findings


def require_unmoved(entries: Iterable[Change]) -> None:
    """Raise ``EngineMoved``, naming all that moved. What is not installed is not looked at."""
    failures = [finding for finding in check_all(entries) if finding.is_failure]
    if failures:
        raise EngineMoved(describe(failures))


def describe(failures: list[Finding]) -> str:
    """Describe in one line what moved, and what to do."""
    named = "; ".join(f"{each.change.target} ({each.problem})" for each in failures)
    targets = ",".join(each.change.target for each in failures)
    return f"{EngineMoved.code}: changed for another version: {named}. {_ADVICE.format(target=targets)}"


def _is_accepted(entry: Change) -> bool:
    accepted = {each.strip() for each in os.environ.get(ACCEPT_VARIABLE, "").split(",")}
    return "all" in accepted or entry.target in accepted
