"""This machine's processor, memory, disk and NVIDIA devices, or those of the cluster that jobs run on."""

import dataclasses
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil

from trellis_api.core.ray_cluster import RayNode
from trellis_api.monitoring.schemas import GpuRead

log = logging.getLogger(__name__)
_NVIDIA_SMI_TIMEOUT_S = 5.0
_GPU_FIELDS = "index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw"
_CGROUP = Path("/sys/fs/cgroup")
_MIB = 1024**2


@dataclass(frozen=True)
class Machine:
    """One look at the machine. ``at`` is monotonic time, for the age."""

    cpu_percent: float
    cpu_count: int
    load_1m: float | None
    memory_used_bytes: int
    memory_total_bytes: int
    disk_free_bytes: int | None
    disk_total_bytes: int | None
    gpus: list[GpuRead]
    at: float = field(default_factory=time.monotonic)


def count_cpus() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def look_at_machine(data_root: Path, *, nodes: Sequence[RayNode] | None = None) -> Machine:
    """Measure the machine; the processor's share is that since the previous call.

    GPUs are those of the cluster's nodes where it says so, for jobs run there; else this machine's.
    """
    used, total = measure_memory()
    free, size = measure_disk(data_root)
    return Machine(
        cpu_percent=psutil.cpu_percent(interval=None),
        cpu_count=count_cpus(),
        load_1m=os.getloadavg()[0],
        memory_used_bytes=used,
        memory_total_bytes=total,
        disk_free_bytes=free,
        disk_total_bytes=size,
        gpus=list_cluster_gpus(nodes or ()) or list_gpus(),
    )


def measure_disk(folder: Path) -> tuple[int | None, int | None]:
    """Measure (free, total) bytes; None if the folder can't be read."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None, None
    return usage.free, usage.total


def measure_memory() -> tuple[int, int]:
    """Return (used, total) memory; in a container with a memory limit, that limit and the use under it."""
    machine = psutil.virtual_memory()
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        statistics = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        cache = int(statistics.get("inactive_file", 0))
    except (OSError, ValueError):  # no control group of version 2, or no limit ("max")
        return machine.total - machine.available, machine.total
    if limit >= machine.total:
        return machine.total - machine.available, machine.total
    return max(0, used - cache), limit


def list_cluster_gpus(nodes: Sequence[RayNode]) -> list[GpuRead]:
    """List the devices of all nodes, as Ray's agents measured them."""
    return [
        GpuRead(node=node.hostname, **dataclasses.asdict(device)) for node in nodes for device in node.devices
    ]


def list_gpus() -> list[GpuRead]:
    """List the NVIDIA devices that ``nvidia-smi`` reports; none if it is not installed."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed command, found on PATH
            [program, f"--query-gpu={_GPU_FIELDS}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_NVIDIA_SMI_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("nvidia-smi failed: %s", error)
        return []
    return parse_gpus(answer.stdout)


def find_memory() -> int:
    """Return the memory in bytes of this machine, or of the container that this process runs in."""
    return measure_memory()[1]


def smallest_memory(gpus: Iterable[GpuRead]) -> int | None:
    """Return the memory in bytes of the smallest device; None if none is known."""
    return min((gpu.memory_total_bytes for gpu in gpus if gpu.memory_total_bytes), default=None)


def find_device_memory(platform: str, nodes: Sequence[RayNode] = ()) -> int | None:
    """Find the memory of the smallest GPU in the cluster or this machine; on CPU that of the machine."""
    if platform == "cpu":
        return find_memory()
    return smallest_memory(list_cluster_gpus(nodes)) or _find_gpu_memory()


@cache
def _find_gpu_memory() -> int | None:
    """Find the memory of the smallest of this machine's devices, looked up once."""
    return smallest_memory(list_gpus())


def parse_gpus(text: str) -> list[GpuRead]:
    """Read the CSV of ``nvidia-smi``; a figure that a device does not have ("[N/A]") is None."""
    gpus = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(_GPU_FIELDS.split(",")):
            continue
        used, total = _number(cells[3]), _number(cells[4])
        gpus.append(
            GpuRead(
                index=int(cells[0]),
                name=cells[1],
                utilization_percent=_number(cells[2]),
                memory_used_bytes=None if used is None else int(used * _MIB),
                memory_total_bytes=None if total is None else int(total * _MIB),
                temperature_celsius=_number(cells[5]),
                power_watts=_number(cells[6]),
            )
        )
    return gpus


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
