"""What a campaign found: a table for people, an object for scripts."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trellis_cli.output import out, print_table

from trellis_tools.chaos.campaign import Outcome, Violation

Row = tuple[str, int, int, str]


def tabulate(outcome: Outcome) -> list[Row]:
    """Build one row per kind of fault: name, number of strikes, violations and slowest recovery."""
    counts = Counter(each.planned.kind for each in outcome.struck if each.missed is None)
    found: Counter[str] = Counter()
    for violation in outcome.violations:
        found[violation.kind] += violation.count
    slowest: dict[str, float] = {}
    for each in outcome.struck:
        if each.recovery_s is not None:
            slowest[each.planned.kind] = max(each.recovery_s, slowest.get(each.planned.kind, 0.0))
    kinds = sorted({*counts, *found})
    return [
        (kind, counts[kind], found[kind], f"{slowest[kind]:.1f}" if kind in slowest else "") for kind in kinds
    ]


def as_json(outcome: Outcome, records: Path | None) -> dict[str, Any]:
    """Convert the outcome to JSON, for scripts."""
    return {
        "seed": outcome.seed,
        "database": outcome.database,
        "complete": outcome.is_complete,
        "faults": [
            {
                "number": each.planned.number,
                "kind": each.planned.kind,
                "at": _moment(each.at),
                "missed": each.missed,
                "recovery_s": None if each.recovery_s is None else round(each.recovery_s, 1),
            }
            for each in outcome.struck
        ],
        "violations": [
            {
                "fault": each.fault,
                "kind": each.kind,
                "at": _moment(each.at),
                "rule": each.finding.rule,
                "expected": each.finding.expected,
                "found": each.finding.found,
                "count": each.count,
            }
            for each in outcome.violations
        ],
        "left_out": outcome.left_out,
        "jobs": outcome.jobs,
        "answers": outcome.answers,
        "chats": outcome.chats,
        "slowest_chat_s": None if outcome.slowest_chat_s is None else round(outcome.slowest_chat_s, 1),
        "records": str(records) if records else None,
    }


def print_outcome(outcome: Outcome, records: Path | None) -> None:
    """Print the table, the violations, and where the records are stored."""
    print_table(("fault", "count", "violations", "slowest recovery (s)"), tabulate(outcome))
    for kind, reason in outcome.left_out.items():
        _say(f"not tested: {kind} ({reason})")
    for each in outcome.struck:
        if each.missed is not None:
            _say(f"skipped: fault {each.planned.number}, {each.planned.kind} ({each.missed})")
    jobs = ", ".join(f"{count} {state}" for state, count in sorted(outcome.jobs.items()))
    count = sum(each.missed is None for each in outcome.struck)
    violations = sum(each.count for each in outcome.violations)
    _say(f"\nseed {outcome.seed}, {outcome.database}: {count} faults, {violations} violations")
    _say(f"jobs: {jobs}")
    if outcome.slowest_chat_s is not None:
        chats = ", ".join(f"{count} {ending}" for ending, count in outcome.chats.items())
        _say(f"chat requests: {chats}; the slowest took {outcome.slowest_chat_s:.1f} s")
    for violation in outcome.violations:
        _say(describe(violation))
    if records is not None:
        _say(f"logs, database and spools: {records}")


def describe(violation: Violation) -> str:
    """Describe a violation in one line."""
    finding = violation.finding
    times = f" ({violation.count} times)" if violation.count > 1 else ""
    return (
        f"{_moment(violation.at)} after fault {violation.fault} ({violation.kind}): {finding.rule}: "
        f"expected {finding.expected}; found {finding.found}{times}"
    )


def _say(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
