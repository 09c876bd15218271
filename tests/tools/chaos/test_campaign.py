"""A campaign comes to a report whatever breaks, and tells which fault did it, when and how often."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.errors import Problem
from trellis_tools.chaos import campaign as campaigning
from trellis_tools.chaos import command
from trellis_tools.chaos.campaign import Campaign, Struck
from trellis_tools.chaos.fault import Fault, MissedError
from trellis_tools.chaos.ground import Ground
from trellis_tools.chaos.invariants import Finding
from trellis_tools.chaos.load import Asked, Load
from trellis_tools.chaos.plan import PlannedFault
from trellis_tools.chaos.processes import RunFinder

KIND = "kill-api"


@dataclass
class Client:
    """The API of a platform without jobs; it can be away."""

    is_away: bool = False
    attempt: int = 1

    def pages(self, path: str, **_: Any) -> list[dict[str, Any]]:
        self._answer()
        return []

    def get(self, path: str) -> dict[str, Any]:
        self._answer()
        return {"slots": {"used": 0}}

    def _answer(self) -> None:
        if self.is_away:
            raise Problem("the API does not respond")


class Platform:
    """What a campaign asks of its ground, with nothing behind it."""

    def __init__(self, data_root: Path) -> None:
        self.client = Client()
        self.data_root = data_root
        self.runs = RunFinder(data_root)
        self.is_on_sqlite, self.disk = True, "no disk"
        self.supervisor = self
        self.calls: list[str] = []

    def find_problems(self) -> list[str]:
        return ["api: not running"] if self.client.is_away else []

    def list_left(self, job_ids: list[str], *, is_idle: bool) -> list[str]:
        return []

    def list_left_at_end(self) -> tuple[list[str], list[int], list[str]]:
        return [], [], []

    def down(self) -> None:
        self.calls.append("down")

    def keep_records(self) -> Path:
        return self.data_root / "records"


@dataclass
class Quiet:
    """A load that asks for nothing."""

    asked: Asked = field(default_factory=Asked)
    bad_answers: list[tuple[float, str, int]] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None: ...
    def start(self) -> None: ...
    def ask_for_no_more(self) -> None: ...
    def stop(self) -> None: ...


class Harmless(Fault):
    """Breaks nothing, and notes its calls."""

    def find(self, ground: Any) -> None:
        ground.calls.append("found")

    def strike(self, ground: Any) -> None:
        ground.calls.append("struck")

    def release(self, ground: Any) -> None:
        ground.calls.append("released")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_HEALTHY_TIMEOUT_S", "_MOVING_TIMEOUT_S", "_SOON_S", "_DRAIN_TIMEOUT_S", "_POLL_S"):
        monkeypatch.setattr(campaigning, name, 0.01)
    monkeypatch.setattr(Campaign, "_is_moving", lambda *_: True)


@pytest.fixture
def ground(tmp_path: Path) -> Platform:
    return Platform(tmp_path)


@pytest.fixture
def make(ground: Platform, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Campaign]:
    """A campaign of one kind of fault."""

    def make(fault: type[Fault], load: Quiet | None = None) -> Campaign:
        monkeypatch.setattr(campaigning, "FAULTS", {KIND: fault})

        def plan(*_: object) -> Iterator[PlannedFault]:
            return (PlannedFault(number, KIND, 0.0, 0.0, 1) for number in range(1, 100))

        monkeypatch.setattr(campaigning, "plan_faults", plan)
        as_ground: Ground = ground  # type: ignore[assignment]
        as_load: Load = load or Quiet()  # type: ignore[assignment]
        return Campaign(as_ground, as_load, 1, lambda _: None, wanted=[KIND], has_endpoint=False)

    return make


def test_a_campaign_in_which_nothing_breaks_is_held(make: Callable[..., Campaign], ground: Platform) -> None:
    campaign = make(Harmless)

    campaign.run(1, count=2)

    assert campaign.outcome.is_held
    assert ground.calls == ["found", "struck", "released"] * 2 + ["down"]


def test_a_platform_that_does_not_come_back_ends_the_campaign_with_its_violations(
    make: Callable[..., Campaign],
) -> None:
    class TakeAway(Harmless):
        def strike(self, ground: Any) -> None:
            ground.client.is_away = True

    campaign = make(TakeAway)

    campaign.run(1, count=5)

    outcome = campaign.outcome
    assert (outcome.is_complete, outcome.is_held, len(outcome.struck)) == (False, False, 1)
    assert {(each.fault, each.kind, each.finding.rule) for each in outcome.violations} == {
        (1, KIND, "it recovers")
    }
    last = outcome.violations[-1].finding
    assert (last.expected, last.found) == (
        "after fault 1: the campaign can go on", "the API does not respond"
    )  # fmt: skip


def test_a_fault_that_cannot_be_taken_away_ends_the_campaign_with_a_violation(
    make: Callable[..., Campaign],
) -> None:
    class Stuck(Harmless):
        def release(self, ground: Any) -> None:
            raise Problem("ray is not ready after 240 s")

    campaign = make(Stuck)

    campaign.run(1, count=5)

    (violation,) = campaign.outcome.violations
    assert (violation.fault, violation.finding.found) == (1, "ray is not ready after 240 s")
    assert not campaign.outcome.is_complete


def test_an_interrupted_fault_is_taken_away(
    make: Callable[..., Campaign], ground: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        if seconds:
            raise KeyboardInterrupt

    monkeypatch.setattr(Harmless, "lasts_s", (1.0, 1.0))
    campaign = make(Harmless)
    monkeypatch.setattr(time, "sleep", sleep)

    campaign.run(1, count=1)

    assert ground.calls == ["found", "struck", "released"]
    assert not campaign.outcome.is_complete


def test_the_time_in_which_something_to_break_is_looked_for_is_no_excuse(
    make: Callable[..., Campaign],
) -> None:
    class Late(Harmless):
        def find(self, ground: Any) -> None:
            time.sleep(0.3)
            self.found_at = time.time()
            load.bad_answers.append((self.found_at - 0.1, "GET /jobs", 503))

    load = Quiet()
    campaign = make(Late, load)

    campaign.run(1, count=1)

    (violation,) = campaign.outcome.violations
    assert violation.finding.found == "GET /jobs: 503"
    assert (violation.fault, violation.kind) == (0, "none")


def test_what_was_not_found_has_not_struck(make: Callable[..., Campaign], ground: Platform) -> None:
    class Missing(Harmless):
        def find(self, ground: Any) -> None:
            raise MissedError("no run began within 60 s")

    campaign = make(Missing)

    campaign.run(1, count=1)

    (struck,) = campaign.outcome.struck
    assert struck.missed == "no run began within 60 s"
    assert ground.calls == ["down"]


def test_violations_belong_to_the_fault_before_them_and_repeats_are_counted(
    make: Callable[..., Campaign],
) -> None:
    campaign = make(Harmless)
    faults = [PlannedFault(number, KIND, 0.0, 0.0, 1) for number in (1, 2, 3)]
    campaign.outcome.struck = [
        Struck(faults[0], 10.0), Struck(faults[1], 20.0, missed="no run began"), Struck(faults[2], 30.0)
    ]  # fmt: skip
    answers = [Finding("the API answers", "no 500", f"GET /jobs/{at}: 500", at) for at in (12.0, 22.0, 23.0)]
    late = Finding("the API answers", "no 500", "GET /jobs: 500", 31.0)
    early = Finding("settled in time", "chaos-1 settled within 60 s", "still running after 61 s", 9.0)

    campaign._report([*answers, late, early])
    campaign._report([Finding(early.rule, early.expected, "still running after 99 s", 9.0)])

    told = [(each.fault, each.at, each.count, each.finding.found) for each in campaign.outcome.violations]
    assert told == [
        (1, 12.0, 3, "GET /jobs/12.0: 500"),
        (3, 31.0, 1, "GET /jobs: 500"),
        (0, 9.0, 1, "still running after 61 s"),
    ]


def test_another_process_that_is_left_is_told_the_same_one_is_not(make: Callable[..., Campaign]) -> None:
    campaign = make(Harmless)

    for process in ("1 python", "1 python", "2 ray"):
        campaign._report([Finding("nothing left behind", "no process", process)])

    (violation,) = campaign.outcome.violations
    assert violation.count == 2


def test_the_attempt_of_the_endpoint_is_the_one_that_was_struck(
    make: Callable[..., Campaign], ground: Platform
) -> None:
    """It may have been started again since it was looked at last."""

    class Restarted(Harmless):
        def find(self, ground: Any) -> None:
            ground.client.attempt = 2

    class Serving:
        chats = None

        def read_attempt(self) -> int:
            return ground.client.attempt

        def is_settled(self, *, since: float, before: int) -> bool:
            asked.append(before)
            return True

        def __getattr__(self, name: str) -> Any:
            return lambda *_: []

    asked: list[int] = []
    campaign = make(Restarted)
    campaign._serving = Serving()  # type: ignore[assignment]

    campaign._strike(next(campaign._plan))

    assert asked == [2]


def test_the_report_is_printed_though_the_platform_does_not_come_back(
    make: Callable[..., Campaign],
    ground: Platform,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class TakeAway(Harmless):
        def strike(self, ground: Any) -> None:
            ground.client.is_away = True

    class Prepared:
        def __enter__(self) -> Platform:
            return ground

        def __exit__(self, *_: object) -> None:
            raise Problem("it does not end either")

    campaign = make(TakeAway)
    monkeypatch.setattr(command, "prepared_ground", lambda *_: Prepared())
    monkeypatch.setattr(command, "Load", lambda *_: None)
    monkeypatch.setattr(command, "Campaign", lambda *_, **__: campaign)

    with pytest.raises(Problem, match="it does not end either"):
        command.run_chaos(
            minutes=1, count=3, seed=1, kinds=[], database_url=None, has_endpoint=False, is_json=True
        )

    told = json.loads(capsys.readouterr().out)
    assert told["complete"] is False
    assert {each["count"] for each in told["violations"]} == {1}
    assert told["records"] == str(ground.data_root / "records")
