"""The filter of system calls: what it allows on each processor, and programs that must work under it."""

import ctypes
import re
import struct
from collections.abc import Callable

import pytest
from trellis_train.sandbox import system_calls
from trellis_train.sandbox.limits import MIB, Limits
from trellis_train.sandbox.program import run_program
from trellis_train.sandbox.seccomp import build_filter
from trellis_train.sandbox.system_calls import ALLOWED, NEWEST, Numbers

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
#: Calls by which code has left sandboxes, or that reach other processes, other users or the network.
NEVER = re.findall(
    r"\w+",
    """
    socket connect bind listen accept accept4 fork vfork execveat unshare setns mount umount2 pivot_root
    chroot fsopen fsmount move_mount open_tree mount_setattr ptrace process_vm_readv process_vm_writev
    process_madvise kcmp pidfd_open pidfd_getfd pidfd_send_signal keyctl add_key request_key bpf
    perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register memfd_create
    memfd_secret shmget shmat msgget semget mq_open init_module finit_module kexec_load reboot swapon
    acct quotactl syslog settimeofday clock_settime adjtimex personality setuid setgid setresuid
    setresgid setgroups capset open_by_handle_at name_to_handle_at mknodat fanotify_init inotify_init1
    vmsplice splice tee sched_setaffinity sched_setscheduler setpriority ioprio_set migrate_pages
    move_pages mbind set_mempolicy lookup_dcookie nfsservctl vhangup rt_sigqueueinfo seccomp
    """,
)


def libseccomp() -> Callable[[str, str], int] | None:
    """What numbers the C library knows; None where it is not installed."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return None
    resolve = library.seccomp_syscall_resolve_name_arch
    resolve.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    return lambda machine, name: int(resolve(MACHINES[machine], name.encode()))


RESOLVE = libseccomp()


def decide(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter answers: the few instructions that it uses, executed as the kernel does."""
    program = build_filter(machine)
    assert program is not None
    filled = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number, architecture or MACHINES[machine], 0, *filled)
    steps = list(struct.iter_unpack("<HBBI", program))
    at = register = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            register = struct.unpack_from("<I", data, value)[0]
        elif code == 0x06:
            return int(value)
        else:
            holds = {0x15: register == value, 0x25: register > value, 0x45: bool(register & value)}[code]
            at += if_true if holds else if_false


@pytest.mark.skipif(RESOLVE is None, reason="libseccomp, which knows the numbers, is not installed")
@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_that_libseccomp_knows(machine: str) -> None:
    assert RESOLVE is not None
    conditional = {
        name.lower(): value for name, value in vars(system_calls).items() if isinstance(value, Numbers)
    }
    for name, numbers in {**ALLOWED, **conditional}.items():
        known = RESOLVE(machine, name)
        assert getattr(numbers, machine) == (known if known >= 0 else None), name


@pytest.mark.skipif(RESOLVE is None, reason="libseccomp, which knows the numbers, is not installed")
@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_reach_out_of_the_sandbox_are_refused(machine: str) -> None:
    assert RESOLVE is not None
    for name in NEVER:
        number = RESOLVE(machine, name)
        if number >= 0:
            assert decide(machine, number) in (EPERM, ENOSYS), name


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_that_is_not_listed_is_refused(machine: str) -> None:
    listed = {getattr(numbers, machine) for numbers in ALLOWED.values()}

    allowed = {number for number in range(NEWEST + 200) if decide(machine, number, *[2**32] * 6) == ALLOW}

    assert allowed - listed <= {system_calls.PRLIMIT64._asdict()[machine]}
    assert decide(machine, NEWEST + 1) == ENOSYS
    assert decide(machine, 0x40000000 + 1) == ENOSYS  # a call of the x32 ABI


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_end_the_process(machine: str) -> None:
    assert decide(machine, 0, architecture=0x40000003) == KILL


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "answer"),
    [
        ("SOCKETPAIR", (1,), ALLOW),
        ("SOCKETPAIR", (2,), EPERM),
        ("SOCKETPAIR", (40,), EPERM),
        ("CLONE", (0x3D0F00,), ALLOW),
        ("CLONE", (0x4111,), EPERM),
        ("IOCTL", (0, 0x5421), ALLOW),
        ("IOCTL", (0, 0x5412), EPERM),  # TIOCSTI: types into the terminal
        ("PRCTL", (15,), ALLOW),
        ("PRCTL", (22,), EPERM),
        ("PRLIMIT64", (0,), ALLOW),
        ("PRLIMIT64", (1,), EPERM),
        ("CLONE3", (), ENOSYS),
    ],
)
def test_arguments_decide_about_some_calls(
    machine: str, call: str, arguments: tuple[int, ...], answer: int
) -> None:
    number = getattr(getattr(system_calls, call), machine)

    assert decide(machine, number, *arguments) == answer


def test_there_is_no_filter_for_a_processor_that_is_not_known() -> None:
    assert build_filter("riscv64") is None


PROGRAMS = {
    "files": """
import os, pathlib, shutil, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "a").write_text("x")
shutil.copy2(folder / "a", folder / "b")
os.rename(folder / "b", folder / "c"); os.symlink("c", folder / "d"); os.utime(folder / "c")
assert sorted(os.listdir(folder)) == ["a", "c", "d"] and (folder / "d").read_text() == "x"
shutil.rmtree(folder)
""",
    "threads and queues": """
import queue, threading, time
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(lambda n: n * n, range(100))) == 328350
event = threading.Event(); threading.Timer(0.01, event.set).start(); assert event.wait(5)
""",
    "an event loop": """
import asyncio
async def double(n):
    await asyncio.sleep(0.001)
    return 2 * n
async def main():
    loop = asyncio.get_running_loop()
    assert await loop.run_in_executor(None, sum, [1, 2]) == 3
    return await asyncio.gather(*map(double, range(9)))
assert asyncio.run(main())[-1] == 16
""",
    "signals and time": """
import os, random, resource, signal, time, uuid
def stop(*_): raise TimeoutError
signal.signal(signal.SIGALRM, stop); signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    time.sleep(5)
except TimeoutError:
    pass
assert uuid.uuid4() and os.urandom(8) and time.time() and os.cpu_count() and resource.getrusage(0)
""",
    "the standard library": """
import bz2, csv, ctypes, datetime, decimal, hashlib, lzma, mmap, sqlite3, zlib, zoneinfo
assert sqlite3.connect("/tmp/x.db").execute("select 1").fetchone() == (1,)
assert lzma.decompress(lzma.compress(b"x")) == b"x" and datetime.datetime.now().astimezone()
""",
    "numpy": """
import numpy
a = numpy.random.default_rng(0).normal(size=(64, 64))
assert numpy.allclose(numpy.linalg.inv(a) @ a, numpy.eye(64))
numpy.save("/tmp/a.npy", a); numpy.load("/tmp/a.npy", mmap_mode="r")
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ordinary_programs_run_under_it(name: str) -> None:
    limits = Limits(wall_s=60, memory_bytes=1024 * MIB)

    outcome = run_program(f"{PROGRAMS[name]}\nprint('done')".encode(), standard_input="", limits=limits)

    assert (outcome.output, outcome.exit_code) == ("done\n", 0)
