"""The kernel's filter of the system calls of isolated code (seccomp-BPF): a list of what is allowed.

Isolated code is one process: it may have threads, but ``fork`` and its like are refused, so
that limits on one process hold for everything. (Limits on the number of processes do not
count for root, whom services in containers often run as.) It can make no socket but pairs of
local ones, which event loops wake themselves with. Why the program is our own: ADR 27.
"""

import platform
import struct
from collections.abc import Iterable

from trellis_train.sandbox.system_calls import (
    ALLOWED,
    CLONE,
    CLONE3,
    IOCTL,
    NEWEST,
    PRCTL,
    PRLIMIT64,
    SOCKETPAIR,
    Numbers,
)

_LOAD_WORD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _KILL, _FAIL_WITH = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_CLONE_THREAD = 0x00010000
_AF_UNIX = 1
#: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: about open files, none changes a terminal.
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
#: PR_SET_NAME, PR_GET_NAME, PR_SET_VMA: names of threads and of memory, for who looks at the process.
_PRCTLS = (15, 16, 0x53564D41)
#: Its own limits: those of the sandbox's first process are no business of it.
_OWN_PROCESS = (0,)
#: How the kernel calls the processors (``AUDIT_ARCH_*``); both have the low half of an argument first.
_AUDIT_NUMBERS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def build_filter(machine: str | None = None) -> bytes | None:
    """Build the filter for a processor, by default this machine's; None if its calls are not known."""
    machine = machine or platform.machine()
    if machine not in _AUDIT_NUMBERS:
        return None

    def number(call: Numbers) -> int:
        found = getattr(call, machine)
        if not isinstance(found, int):
            raise TypeError(f"a call with conditions is missing on {machine}")
        return found

    program = [
        _step(_LOAD_WORD, _ARCHITECTURE_AT),
        _step(_JUMP_EQUAL, _AUDIT_NUMBERS[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD_WORD, _NUMBER_AT),
        _step(_JUMP_ABOVE, NEWEST, 0, 1),
        _step(_RETURN, _FAIL_WITH | _ENOSYS),
        *_decide(number(CLONE3), _FAIL_WITH | _ENOSYS),
    ]
    for call in ALLOWED.values():
        if getattr(call, machine) is not None:
            program += _decide(number(call), _ALLOW)
    program += [
        *_allow_bits(number(CLONE), argument=0, bits=_CLONE_THREAD),
        *_allow_values(number(SOCKETPAIR), argument=0, values=(_AF_UNIX,)),
        *_allow_values(number(IOCTL), argument=1, values=_IOCTLS),
        *_allow_values(number(PRCTL), argument=0, values=_PRCTLS),
        *_allow_values(number(PRLIMIT64), argument=0, values=_OWN_PROCESS),
        _step(_RETURN, _FAIL_WITH | _EPERM),
    ]
    return b"".join(program)


def _decide(number: int, answer: int) -> list[bytes]:
    return [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, answer)]


def _allow_values(number: int, *, argument: int, values: Iterable[int]) -> list[bytes]:
    """Allow the call if the argument's low half (all the kernel reads here) is one of the values."""
    checks = [step for value in values for step in _decide(value, _ALLOW)]
    return _with_argument(number, argument, checks)


def _allow_bits(number: int, *, argument: int, bits: int) -> list[bytes]:
    return _with_argument(number, argument, [_step(_JUMP_BITS, bits, 0, 1), _step(_RETURN, _ALLOW)])


def _with_argument(number: int, argument: int, checks: list[bytes]) -> list[bytes]:
    """Run checks on an argument's low half, then refuse the call."""
    steps = [
        _step(_LOAD_WORD, _ARGUMENTS_AT + 8 * argument),
        *checks,
        _step(_RETURN, _FAIL_WITH | _EPERM),
    ]
    return [_step(_JUMP_EQUAL, number, 0, len(steps)), *steps]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
