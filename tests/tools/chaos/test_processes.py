"""Runs and their remains are found among the processes of the machine."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from trellis_testing.waiting import wait_until
from trellis_tools.chaos.processes import ENTRYPOINT, RunFinder, kill_all, list_remains, list_tree, signal_all
from trellis_tools.chaos.run_ends import RunEnds

#: Prints when Python runs, that is when the process shows its own command.
SLEEP = "import time; print('up', flush=True); time.sleep(60)"
Start = Callable[..., psutil.Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that sleep, with these arguments and variables."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **variables: str) -> psutil.Process:
        command = [sys.executable, "-c", SLEEP, *arguments]
        begun.append(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True))
        stdout = begun[-1].stdout
        assert stdout is not None
        assert stdout.readline() == "up\n"
        return psutil.Process(begun[-1].pid)

    yield begin
    for process in begun:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def spec(root: Path, job: str) -> str:
    return f"{root}/jobs/{job}/attempt-1/spec.json"


def test_the_runs_of_this_data_root_are_found_and_no_others(start: Start, tmp_path: Path) -> None:
    run = start(ENTRYPOINT, spec(tmp_path, "job_a"))
    start(ENTRYPOINT, spec(tmp_path / "other", "job_b"))
    start("subreaper.py", "1", ENTRYPOINT, spec(tmp_path, "job_c"))

    finder = RunFinder(tmp_path)

    assert finder.find() == {"job_a": run}
    kill_all([run])
    assert finder.find() == {}


def test_the_end_of_a_run_is_when_it_was_seen_last_or_froze(start: Start, tmp_path: Path) -> None:
    killed, frozen = start(ENTRYPOINT, spec(tmp_path, "a")), start(ENTRYPOINT, spec(tmp_path, "b"))
    ends = RunEnds(RunFinder(tmp_path))

    ends.look(now=100.0)
    kill_all([killed])
    signal_all([frozen], signal.SIGSTOP)
    ends.note_frozen("b", 100.5)
    ends.look(now=101.0)
    kill_all([frozen])
    ends.look(now=102.0)

    assert {(end.job_id, end.at, end.is_frozen) for end in ends.list()} == {
        ("a", 100.0, False),
        ("b", 100.5, True),
    }


def test_a_process_that_names_a_finished_job_is_a_remain(start: Start, tmp_path: Path) -> None:
    by_command, by_variable = start(spec(tmp_path, "a")), start(ATTEMPT=f"{tmp_path}/jobs/a/attempt-1")
    other = start(spec(tmp_path, "b"))

    found = list_remains([by_command.pid, by_variable.pid, other.pid, 2**22 + 1], [f"{tmp_path}/jobs/a/"])

    assert sorted(int(line.split()[0]) for line in found) == sorted([by_command.pid, by_variable.pid])


def test_a_service_that_does_not_run_has_no_processes_to_break(start: Start) -> None:
    gone = start()
    kill_all([gone])

    assert list_tree(None) == []
    assert list_tree(gone.pid) in ([], [gone])  # nobody has waited for it yet


def test_a_stopped_process_goes_on_when_it_is_continued(start: Start) -> None:
    process = start()

    signal_all([process], signal.SIGSTOP)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, 5, "it stands still")
    signal_all([process], signal.SIGCONT)

    wait_until(lambda: process.status() == psutil.STATUS_SLEEPING, 5, "it goes on")
