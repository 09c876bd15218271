"""Commands of a CI run: two at a time, their output kept, ended at their limit."""

import sys
import time
from pathlib import Path

import psutil
import pytest
from trellis_testing.waiting import wait_until
from trellis_tools.ci.commands import Command, Outcome, run, run_side_by_side
from trellis_tools.ci.report import show


def python(name: str, program: str, *arguments: str, **more: object) -> Command:
    return Command(name, [sys.executable, "-c", program, *arguments], **more)  # type: ignore[arg-type]


def test_output_is_shown_after_a_failure_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good, bad = python("good", "print('fine')"), python("bad", "print('[red]broken'); raise SystemExit(3)")
    missing = Command("missing", ["no-such-command-here"])

    outcomes = run_side_by_side([good, bad, missing], logs=tmp_path, on_end=show)

    shown = capfd.readouterr().out
    assert [outcome.has_passed for outcome in outcomes] == [True, False, False]
    assert "fine" not in shown
    assert "[red]broken" in shown
    assert "no-such-command-here: No such file" in shown


def test_an_accepted_exit_status_counts_as_passed(tmp_path: Path) -> None:
    command = python("none", "raise SystemExit(5)", accepted=(0, 5))

    assert run(command, tmp_path / "log").has_passed


#: Exits with 0 once another one has started too.
MEET = """
import sys, time
from pathlib import Path
mine, other = map(Path, sys.argv[1:])
mine.write_text(str(time.time()))
for _ in range(200):
    if other.exists():
        sys.exit(0)
    time.sleep(0.1)
sys.exit("the other did not start")
"""


def test_two_commands_run_at_a_time_in_their_order(tmp_path: Path) -> None:
    marks = [tmp_path / str(number) for number in range(4)]
    pairs = [(marks[number], marks[number ^ 1]) for number in range(4)]
    commands = [python(mine.name, MEET, str(mine), str(other)) for mine, other in pairs]

    outcomes = run_side_by_side(commands, logs=tmp_path, on_end=lambda outcome: None, lanes=2)

    assert all(outcome.has_passed for outcome in outcomes)
    started = [float(mark.read_text()) for mark in marks]
    assert max(started[:2]) < min(started[2:])


#: Starts a child that ignores SIGINT, as Ray's processes may, and ignores it too.
DEAF = """
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(300)
"""


def test_a_command_past_its_limit_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis_tools.ci.commands.GRACE_S", 0.2)
    command = python("deaf", DEAF, str(tmp_path / "child"), timeout_s=3.0)
    started = time.monotonic()

    outcome: Outcome = run(command, tmp_path / "log")

    assert not outcome.has_passed
    assert "took longer than 3 s" in outcome.output
    assert time.monotonic() - started < 60
    child = int((tmp_path / "child").read_text())
    # A signal is delivered when the process is next scheduled: on a busy machine not at once.
    wait_until(lambda: has_ended(child), 30, "its child has ended")


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
