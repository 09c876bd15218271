"""The inside of a process that is kept: what is printed is no status, and it never outlives its caller."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from trellis_testing.waiting import wait_until

PROGRAM = """
import os, subprocess, sys, time
from trellis_data.warm_process import serve

def carry_out(folder):
    asked = (folder / "asked").read_text()
    print(f"doing {asked}", flush=True)
    os.system("echo a child says so")
    if asked == "raise":
        raise RuntimeError("it cannot be done")
    if asked == "sleep":
        (folder / "child").write_text(str(subprocess.Popen(["sleep", "60"]).pid))
        time.sleep(60)
    return int(asked)

serve(carry_out)
"""


@pytest.fixture
def process() -> Iterator["subprocess.Popen[str]"]:
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True,
    )  # fmt: skip
    yield started
    started.kill()
    started.wait()
    for stream in (started.stdin, started.stdout):
        assert stream is not None
        stream.close()


def give(process: "subprocess.Popen[str]", folder: Path, asked: str) -> Path:
    folder.mkdir()
    (folder / "asked").write_text(asked)
    assert process.stdin is not None
    process.stdin.write(f"{folder}\n")
    return folder


def hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_each_task_has_its_status_and_its_own_log(process: "subprocess.Popen[str]", tmp_path: Path) -> None:
    first = give(process, tmp_path / "first", "0")
    assert hear(process) == "0\n"
    second = give(process, tmp_path / "second", "65")
    assert hear(process) == "65\n"

    assert (first / "log").read_text() == "doing 0\na child says so\n"
    assert (second / "log").read_text() == "doing 65\na child says so\n"


def test_an_error_is_a_status_with_its_reason_in_the_log(
    process: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    folder = give(process, tmp_path / "bad", "raise")

    assert hear(process) == "1\n"
    assert (folder / "log").read_text().endswith("RuntimeError: it cannot be done\n")


def test_it_ends_with_its_caller_in_the_middle_of_a_task(
    process: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    folder = give(process, tmp_path / "long", "sleep")
    note = folder / "child"
    child = int(wait_until(lambda: note.exists() and note.read_text(), 30, "it works"))
    assert process.stdin is not None
    process.stdin.close()

    assert process.wait(10) == -9
    stat = Path(f"/proc/{child}/stat")
    wait_until(lambda: not stat.exists() or stat.read_text().split()[2] == "Z", 10, "its child ends")
