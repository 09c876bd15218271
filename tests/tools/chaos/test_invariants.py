"""Each invariant is violated once, and holds where it should."""

import re
from pathlib import Path
from typing import Any

import pytest
from trellis_tools.chaos import invariants
from trellis_tools.chaos.accounts import Account
from trellis_tools.chaos.chats import ANSWER_S, ENDS_WITHIN_S, WAIT_S, Chat
from trellis_tools.chaos.invariants import JobFacts, RunEnd, Window

POINTS = {("train/loss", step): 1.0 / step for step in (1, 2, 3)}
OWN = Account(points=dict(POINTS), lines=["stdout: a", "stdout: b"], beginnings=1)
ASKED_AT = {"chaos-1": 1.0, "chaos-2": 2.0}
KEPT = Account(points=dict(POINTS), lines=["stdout: b", "stdout: a"])


def job(**changes: Any) -> JobFacts:
    """One that ran for ten seconds and succeeded."""
    facts: dict[str, Any] = {
        "id": "1",
        "name": "chaos-1",
        "state": "succeeded",
        "attempt": 1,
        "created_at": 100.0,
        "launched_at": 101.0,
        "started_at": 105.0,
        "finished_at": 115.0,
        "total_steps": 3,
    }
    return JobFacts(**(facts | changes))


def found(findings: list[invariants.Finding]) -> str:
    (finding,) = findings
    return finding.found


def test_jobs_that_are_all_there_once_are_kept() -> None:
    listed = [("1", "chaos-1"), ("2", "chaos-2")]

    assert invariants.check_jobs_are_kept({"chaos-1": "1"}, ["chaos-2", "chaos-3"], listed, {}) == []


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([], "chaos-1 (1) once"),
        ([("1", "chaos-1"), ("9", "chaos-1")], "chaos-1 (1) once"),
        ([("1", "chaos-1"), ("2", "chaos-2"), ("3", "chaos-2")], "chaos-2 at most once"),
        ([("1", "chaos-1"), ("4", "foreign")], "only requested jobs"),
    ],
    ids=["lost", "doubled", "doubled without an answer", "nobody asked"],
)
def test_a_job_that_is_lost_or_doubled_is_found(listed: list[tuple[str, str]], expected: str) -> None:
    (finding,) = invariants.check_jobs_are_kept({"chaos-1": "1"}, ["chaos-2"], listed, ASKED_AT)

    assert finding.expected == expected
    assert finding.at == next((at for name, at in ASKED_AT.items() if expected.startswith(name)), None)


def test_a_job_that_began_twice_is_found() -> None:
    assert invariants.check_begun_once(job(), OWN) == []
    assert found(invariants.check_begun_once(job(), Account(beginnings=2))) == "attempt 1, 2 runs"
    assert found(invariants.check_begun_once(job(attempt=2), OWN)) == "attempt 2, 1 runs"


def test_metrics_that_agree_are_whole() -> None:
    assert invariants.check_metrics(job(), OWN, KEPT) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({("train/loss", 2): None}, "1 missing: train/loss at 2; steps [1, 3]"),
        ({("train/loss", 4): 1.0}, "1 never reported: train/loss at 4; steps [1, 2, 3, 4]"),
        ({("train/loss", 2): 9.0}, "1 wrong value: train/loss at 2"),
    ],
    ids=["missing", "extra", "changed"],
)
def test_a_step_that_is_missing_extra_or_changed_is_found(
    change: dict[tuple[str, int], float | None], expected: str
) -> None:
    points = {**POINTS, **{point: value for point, value in change.items() if value is not None}}
    for point in [point for point, value in change.items() if value is None]:
        del points[point]

    findings = invariants.check_metrics(job(), OWN, Account(points=points, lines=KEPT.lines))

    assert "; ".join(each.found for each in findings) == expected


def test_steps_that_neither_account_has_are_missed_in_a_job_that_succeeded() -> None:
    assert found(invariants.check_metrics(job(total_steps=4), OWN, KEPT)) == "steps [1, 2, 3]"
    assert invariants.check_metrics(job(total_steps=4, state="crashed"), OWN, KEPT) == []


def test_a_lost_or_repeated_line_is_found() -> None:
    assert invariants.check_lines(job(), OWN, KEPT) == []
    assert found(invariants.check_lines(job(), OWN, Account(lines=["stdout: a"]))) == "1 lost: ['stdout: b']"
    twice = Account(lines=[*OWN.lines, "stdout: a"])
    assert found(invariants.check_lines(job(), OWN, twice)) == "1 extra: ['stdout: a']"


@pytest.mark.parametrize(
    ("windows", "changes", "is_right"),
    [
        ([], {}, True),
        ([], {"state": "crashed"}, False),
        ([Window(110, 112)], {"state": "crashed"}, False),
        ([Window(110, 112, ends_runs=True)], {"state": "crashed"}, True),
        ([Window(116, 120, ends_runs=True)], {"state": "failed"}, False),
        ([], {"state": "stopped"}, False),
        ([], {"state": "stopped", "is_stop_asked": True}, True),
    ],
    ids=["well", "alone", "harmless fault", "hit", "hit later", "nobody stopped it", "stopped"],
)
def test_only_what_was_hit_may_end_badly(
    windows: list[Window], changes: dict[str, Any], is_right: bool
) -> None:
    assert (invariants.check_outcome(job(**changes), windows) == []) is is_right


def test_a_job_that_is_settled_late_is_found() -> None:
    end = RunEnd("1", 115.0)

    assert invariants.check_settled(job(finished_at=170.0), end, [], 999.0) == []
    assert found(invariants.check_settled(job(finished_at=180.0), end, [], 999.0)) == "settled after 65 s"
    running = job(state="running", finished_at=None)
    assert found(invariants.check_settled(running, end, [], 999.0)) == "still running after 884 s"
    # The time in which the platform was broken does not count, once where it was broken twice.
    broken = [Window(110, 130), Window(120, 130)]
    assert invariants.check_settled(job(finished_at=180.0), end, broken, 999.0) == []
    assert (
        invariants.check_settled(job(finished_at=230.0), RunEnd("1", 115.0, is_frozen=True), [], 999.0) == []
    )


def test_a_job_that_starts_late_on_a_free_slot_is_found() -> None:
    first = job()
    late = job(id="2", name="chaos-2", created_at=110.0, launched_at=176.0, started_at=180.0)
    behind = job(
        id="3", name="chaos-3", created_at=110.0, launched_at=None, started_at=None, finished_at=None
    )

    assert found(invariants.check_starts([first, late], [], 999.0)) == "started after 65 s"
    assert invariants.check_starts([first, late], [Window(114, 130)], 999.0) == []
    queued = [first, JobFacts(**{**vars(behind), "state": "queued"})]
    assert found(invariants.check_starts(queued, [], 300.0)) == "still queued after 185 s"
    # Behind one that runs it waits as long as that takes.
    running = job(state="running", finished_at=None)
    assert invariants.check_starts([running, queued[1]], [], 999.0) == []
    # One that was stopped in the queue gave no slot back.
    stopped = job(
        id="4", name="chaos-4", state="stopped", created_at=104.0, launched_at=None, started_at=None
    )
    assert invariants.check_starts([running, stopped, queued[1]], [], 999.0) == []


def test_a_slot_that_nobody_holds_any_more_is_found() -> None:
    running = job(state="running", finished_at=None)

    assert invariants.check_slots(1, [job(), running]) == []
    assert found(invariants.check_slots(1, [job()])) == "1 slots used"
    assert found(invariants.check_slots(0, [running])) == "0 slots used"


def test_an_error_of_the_api_is_found_and_a_503_only_while_it_is_whole() -> None:
    windows = [Window(10, 20)]

    assert invariants.check_answers([(15.0, "GET /jobs", 503)], windows) == []
    assert found(invariants.check_answers([(15.0, "GET /jobs", 500)], windows)) == "GET /jobs: 500"
    assert found(invariants.check_answers([(25.0, "GET /jobs", 503)], windows)) == "GET /jobs: 503"


def test_a_gap_or_a_repetition_in_a_stream_is_found() -> None:
    gap, repetition = invariants.check_stream("1", 3, [5, 6, 6], [10.0, 11.0, 12.0])

    assert invariants.check_stream("1", 0, [1, 2, 3], [10.0, 11.0, 12.0]) == []
    assert (gap.found, gap.at) == ("5 after 3", 10.0)
    assert (repetition.found, repetition.at) == ("6 after 6", 12.0)


def test_what_is_left_is_found_by_kind() -> None:
    findings = invariants.check_left(["12 python"], [8001], ["d/run/state.tmp"])

    assert [(each.expected, each.found) for each in findings] == [
        ("no process", "12 python"),
        ("no port", "8001"),
        ("no file", "d/run/state.tmp"),
    ]


def test_overlapping_windows_count_once() -> None:
    windows = [Window(0, 10), Window(5, 15), Window(30, 40)]

    assert invariants.undisturbed(5, 35, windows) == 15
    assert invariants.undisturbed(50, 60, windows) == 10
    assert invariants.undisturbed(1, 9, windows) == 0


#: A fault that hit the engine, from 100 to 110, and one that hit the API alone, from 1000 to 1010.
HIT = [Window(100.0, 110.0, ends_endpoint=True), Window(1000.0, 1010.0)]


@pytest.mark.parametrize(
    ("begun_at", "ended_at", "outcome"),
    [
        (10.0, 12.0, "answered"),
        (95.0, 101.0, "cut off"),
        (95.0, 101.0, "200 engine_lost"),
        (130.0, 131.0, "503 endpoint_failed"),
        (300.0, 320.0, "503 endpoint_starting"),
        (1005.0, 1006.0, "no answer"),
        (1005.0, 1006.0, "503 database_busy"),
        (995.0, 1065.0, "answered"),
    ],
    ids=[
        "answered",
        "broken by the fault",
        "lost in a stream",
        "failed since",
        "starts again",
        "API away",
        "refused meanwhile",
        "waited for the API",
    ],
)
def test_a_chat_request_may_end_like_this(begun_at: float, ended_at: float, outcome: str) -> None:
    assert invariants.check_chats([Chat(begun_at, ended_at, outcome)], HIT) == []


@pytest.mark.parametrize(
    ("begun_at", "ended_at", "outcome"),
    [
        (10.0, 11.0, "503 endpoint_failed"),
        (10.0, 11.0, "no answer"),
        (130.0, 131.0, "cut off"),
        (130.0, 131.0, "502 engine_error"),
        (105.0, 106.0, "500 internal_error"),
        (500.0, 501.0, "503 endpoint_starting"),
        (1015.0, 1016.0, "503 endpoint_failed"),
        (500.0, 591.0, "answered"),
    ],
    ids=[
        "before any fault",
        "no answer",
        "cut off without a fault",
        "another error",
        "a bug",
        "not back in time",
        "the engine was not hit",
        "late",
    ],
)
def test_a_chat_request_must_not_end_like_this(begun_at: float, ended_at: float, outcome: str) -> None:
    (finding,) = invariants.check_chats([Chat(begun_at, ended_at, outcome)], HIT)

    assert finding.rule == "requests end"
    assert finding.found == f"{outcome} after {ended_at - begun_at:.0f} s"


def test_the_documentation_has_the_limits_of_requests_to_the_endpoint() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| every chat request ends")]

    assert f"| {ENDS_WITHIN_S:.0f} s (`TRELLIS_ENDPOINT_WAIT_S` {WAIT_S}, " in row
    assert f"`TRELLIS_ENDPOINT_ANSWER_S` {ANSWER_S}, " in row
    assert set(re.findall(r"`([a-z_]+)`", row)) == invariants.CLEAR_ERRORS
