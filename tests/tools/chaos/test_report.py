"""What a campaign prints."""

from pathlib import Path

import pytest
from trellis_tools.chaos.campaign import Outcome, Struck, Violation
from trellis_tools.chaos.invariants import Finding
from trellis_tools.chaos.plan import PlannedFault
from trellis_tools.chaos.report import as_json, describe, print_outcome, tabulate


def struck(number: int, kind: str, recovery_s: float | None, missed: str | None = None) -> Struck:
    return Struck(PlannedFault(number, kind, 1.0, 0.5, 7), 1_700_000_000.0, missed, recovery_s)


OUTCOME = Outcome(
    seed=3,
    database="sqlite",
    left_out={"cut-database": "SQLite has no connections"},
    struck=[
        struck(1, "kill-api", 4.0),
        struck(2, "kill-api", 6.5),
        struck(3, "kill-run", None, missed="no run began"),
    ],
    violations=[
        Violation(
            2, "kill-api", 1_700_000_000.0, Finding("settled in time", "within 60 s", "after 99 s"), count=200
        )
    ],
    jobs={"succeeded": 4},
    chats={"answered": 30, "503 endpoint_failed": 2},
    slowest_chat_s=12.34,
)


def test_the_table_counts_what_struck_and_shows_the_slowest_recovery() -> None:
    assert tabulate(OUTCOME) == [("kill-api", 2, 200, "6.5")]


def test_a_violation_names_fault_time_and_both_sides() -> None:
    assert describe(OUTCOME.violations[0]) == (
        "2023-11-14T22:13:20+00:00 after fault 2 (kill-api): settled in time: "
        "expected within 60 s; found after 99 s (200 times)"
    )


def test_the_object_for_scripts_has_everything() -> None:
    told = as_json(OUTCOME, Path("/tmp/records"))

    assert [each["missed"] for each in told["faults"]] == [None, None, "no run began"]
    assert told["violations"][0]["found"] == "after 99 s"
    assert told["violations"][0]["count"] == 200
    assert told["records"] == "/tmp/records"
    assert told["jobs"] == {"succeeded": 4}
    assert told["chats"] == {"answered": 30, "503 endpoint_failed": 2}
    assert told["slowest_chat_s"] == 12.3


def test_chat_requests_are_shown_by_how_they_ended(capsys: pytest.CaptureFixture[str]) -> None:
    print_outcome(OUTCOME, None)

    line = "chat requests: 30 answered, 2 503 endpoint_failed; the slowest took 12.3 s"
    assert line in capsys.readouterr().out
