"""The seccomp profile of the services that run persons' code, applied to a process as Docker applies it."""

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.namespaces import find_problem
from trellis_tools.compose_check import COMPOSE_FILE

PROFILE = COMPOSE_FILE.parent / "docker" / "seccomp-sandbox.json"
#: The kernel's names of system calls and their numbers, from its header files.
TABLE = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
ALLOW, FAIL_WITH_EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
X86_64 = 0xC000003E
#: Calls by which a container could leave its bounds, or that only a machine's owner has use for.
NEVER = {
    "bpf",
    "finit_module",
    "init_module",
    "io_uring_setup",
    "kexec_load",
    "keyctl",
    "open_by_handle_at",
    "perf_event_open",
    "reboot",
    "settimeofday",
    "swapon",
    "userfaultfd",
}
#: Installs the filter that it reads from standard input, then becomes the probe of the sandbox.
BECOME_PROBE = """
import ctypes, os, sys
program = sys.stdin.buffer.read()
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(program) // 8, program))) == 0, ctypes.get_errno()
os.execv(sys.executable, [sys.executable, "-m", sys.argv[1]])
"""
#: A process is isolated, and another one joins it.
JOINING = """
import os
from trellis_contracts.isolation import Rules
from trellis_contracts.namespaces import enter, join
told, tell = os.pipe()
wait, end = os.pipe()
first = os.fork()
if first == 0:
    os.close(end)
    enter(Rules("required", os.devnull))
    os.write(tell, b"1")
    os.read(wait, 1)
    os._exit(0)
os.close(tell)
assert os.read(told, 1), "it is not isolated"
join(first)
assert os.readlink("/proc/self/ns/mnt") == os.readlink(f"/proc/{first}/ns/mnt")
"""


@pytest.fixture(scope="module")
def profile() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(PROFILE.read_text())
    return parsed


def compile_filter(profile: dict[str, Any]) -> bytes:
    """The rules of a profile as the kernel's filter language has them."""
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", TABLE.read_text()))
    program = [
        step(LOAD, ARCHITECTURE_AT),
        step(EQUAL, X86_64, 1, 0),
        step(RETURN, KILL),
        step(LOAD, NUMBER_AT),
    ]
    for rule in profile["syscalls"]:
        for name in filter(numbers.__contains__, rule["names"]):
            number = int(numbers[name])
            if not rule.get("args"):
                program += [step(EQUAL, number, 0, 1), step(RETURN, ALLOW)]
            for each in rule.get("args", ()):
                program += [
                    step(EQUAL, number, 0, 4),
                    step(LOAD, ARGUMENTS_AT + 8 * each["index"]),
                    step(EQUAL, each["value"], 0, 1),
                    step(RETURN, ALLOW),
                    step(LOAD, NUMBER_AT),
                ]
    program.append(step(RETURN, FAIL_WITH_EPERM))
    return b"".join(program)


def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def probe_under(
    profile: dict[str, Any], module: str = "trellis_train.sandbox", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """What ``python -m`` with a module says under a profile."""
    command = [sys.executable, "-c", BECOME_PROBE, module]
    return subprocess.run(
        command,
        input=compile_filter(profile),
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, **variables},
    )


@pytest.mark.skipif(not TABLE.is_file(), reason="the kernel's header files for x86-64 are not installed")
def test_a_sandbox_can_be_made_under_the_profile(profile: dict[str, Any]) -> None:
    done = probe_under(profile)

    assert done.returncode == 0, (done.stdout, done.stderr)


@pytest.mark.skipif(not TABLE.is_file(), reason="the kernel's header files for x86-64 are not installed")
def test_jobs_can_be_isolated_under_the_profile(profile: dict[str, Any]) -> None:
    done = probe_under(profile, "trellis_contracts.isolated")

    assert done.returncode == 0, (done.stdout, done.stderr)


@pytest.mark.skipif(not TABLE.is_file(), reason="the kernel's header files for x86-64 are not installed")
@pytest.mark.skipif(find_problem() is not None, reason="user namespaces are not permitted here")
def test_a_jobs_processes_can_join_it_under_the_profile(profile: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "joining.py").write_text(JOINING)

    done = probe_under(profile, "joining", PYTHONPATH=str(tmp_path))

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not TABLE.is_file(), reason="the kernel's header files for x86-64 are not installed")
@pytest.mark.parametrize("call", ["mount", "pivot_root", "sethostname", "umount2", "unshare"])
def test_nothing_that_the_profile_adds_for_it_is_spare(profile: dict[str, Any], call: str) -> None:
    rules = [
        {**rule, "names": [name for name in rule["names"] if name != call]} for rule in profile["syscalls"]
    ]

    done = probe_under({**profile, "syscalls": rules})

    assert done.returncode == 1
    assert b"bubblewrap failed" in done.stdout


def test_calls_that_no_service_needs_stay_forbidden(profile: dict[str, Any]) -> None:
    allowed = {name for rule in profile["syscalls"] for name in rule["names"]}

    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ALLOW"}
    assert allowed & NEVER == set()
    assert "socket" not in {
        name for rule in profile["syscalls"] if "args" not in rule for name in rule["names"]
    }
