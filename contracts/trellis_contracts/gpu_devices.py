"""GPUs of this machine, and the device files that CUDA and NCCL open (standard library).

Whether a process in a namespace can use the files is found out here, too.
"""

import os
import resource
from collections.abc import Sequence
from pathlib import Path

_FOLDER = Path("/dev")
#: GPUs and the driver's own, parts of GPUs (MIG), memory of other nodes (IMEX), adapters of the network, and
#: copies between both.
_PATTERNS = ("nvidia*", "nvidia-caps/*", "nvidia-caps-imex-channels/*", "infiniband/*", "gdrdrv")
_UVM = "nvidia-uvm"
#: What a process and those that it starts may use.
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def list_visible_gpus() -> list[str]:
    """List the NVIDIA GPUs that processes started from here may use, as in ``CUDA_VISIBLE_DEVICES``."""
    told = os.environ.get(VISIBLE_DEVICES)
    if told is None:
        return [str(number) for number in range(count_gpus())]
    named = [each.strip() for each in told.split(",")]
    return [each for each in named if each not in ("", "-1")]


def count_gpus() -> int:
    """Count this machine's NVIDIA devices without loading a CUDA library."""
    return sum(1 for path in _FOLDER.glob("nvidia*") if path.name.removeprefix("nvidia").isdigit())


def list_devices() -> list[str]:
    """List the devices that this process can open."""
    found = (path for pattern in _PATTERNS for path in sorted(_FOLDER.glob(pattern)))
    return [str(path) for path in found if path.is_char_device() and _can_open(str(path))]


def find_obstacle(devices: Sequence[str]) -> str | None:
    """Return why this process cannot use GPUs whose ``devices`` could be opened outside, or None."""
    for device in devices:
        if not _can_open(device):
            return f"{device} cannot be opened inside"
    if count_gpus() and not (_FOLDER / _UVM).exists():
        # CUDA has it made when it is first used, by a program that is root's and inside is nobody's.
        return f"{_FOLDER / _UVM} is missing and cannot be made inside; run nvidia-modprobe -u -c=0"
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if (
        os.geteuid() == 0
        and limit != resource.RLIM_INFINITY
        and any("/infiniband/" in each for each in devices)
    ):
        # Outside, root is exempt from the limit (``namespaces.enter`` raises it where it may).
        return f"root can lock only {limit} bytes of memory inside; set ulimit -l unlimited for InfiniBand"
    return None


def _can_open(device: str) -> bool:
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True
