"""The system calls that isolated code may not make, as a filter for the kernel (seccomp-BPF).

Isolated code is one process: it may have threads, but ``fork`` and its like are refused, so
that limits on one process hold for everything. (Limits on the number of processes do not
count for root, whom services in containers often run as.)
"""

import platform
import struct
from typing import NamedTuple

_LOAD_WORD, _JUMP_EQUAL, _JUMP_FROM, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _KILL, _FAIL_WITH = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_CLONE_THREAD = 0x00010000
#: x86-64 processes may also make the calls of the x32 ABI, which have this bit.
_X32_BIT = 0x40000000


class _Architecture(NamedTuple):
    audit_number: int
    clone: int
    clone3: int
    #: fork, vfork, and calls that reach into the kernel or other processes.
    refused: tuple[int, ...]


#: unshare setns mount umount2 pivot_root chroot ptrace process_vm_readv/writev keyctl add_key request_key
#: bpf perf_event_open userfaultfd io_uring_setup memfd_create memfd_secret shmget msgget
_ARCHITECTURES = {
    "x86_64": _Architecture(
        0xC000003E,
        56,
        435,
        (29, 57, 58, 68, 101, 155, 161, 165, 166, 248, 249, 250, 272, 298, 308, 310, 311, 319, 321, 323, 425),
    ),
    "aarch64": _Architecture(
        0xC00000B7,
        220,
        435,
        (97, 268, 40, 39, 41, 51, 117, 270, 271, 219, 217, 218, 280, 241, 282, 425, 279, 447, 194, 186),
    ),
}


def build_filter() -> bytes | None:
    """The filter for this machine's processor; None where none is known."""
    found = _ARCHITECTURES.get(platform.machine())
    if found is None:
        return None
    program = [
        _step(_LOAD_WORD, _ARCHITECTURE_AT),
        _step(_JUMP_EQUAL, found.audit_number, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD_WORD, _NUMBER_AT),
        _step(_JUMP_FROM, _X32_BIT, 0, 1),
        _step(_RETURN, _FAIL_WITH | _ENOSYS),
    ]
    for number in found.refused:
        program += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, _FAIL_WITH | _EPERM)]
    # glibc falls back to clone, whose flags can be looked at.
    program += [_step(_JUMP_EQUAL, found.clone3, 0, 1), _step(_RETURN, _FAIL_WITH | _ENOSYS)]
    program += [
        _step(_JUMP_EQUAL, found.clone, 0, 3),
        _step(_LOAD_WORD, _FIRST_ARGUMENT_AT),
        _step(_JUMP_BITS, _CLONE_THREAD, 1, 0),
        _step(_RETURN, _FAIL_WITH | _EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(program)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
