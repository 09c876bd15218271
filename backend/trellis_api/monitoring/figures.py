"""Measures a node in figures by name: this machine by its own counters, others as Ray's agents there did."""

import re
import socket
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from trellis_api.core.ray_cluster import GpuDevice, RayNode
from trellis_api.monitoring.machine import list_gpus, measure_disk, measure_memory
from trellis_api.monitoring.schemas import GpuRead

#: A process is listed from this size on, and at most so many of them.
_LISTED_BYTES = 64 * 1024**2
_LISTED_PROCESSES = 12
_JOB = re.compile(r"\bjob_[0-9a-z]{12,}\b")
#: Rates by the counter that they are the growth of.
_RATES = {
    "disk_read_bytes": "disk_read_bytes_per_s",
    "disk_written_bytes": "disk_written_bytes_per_s",
    "network_received_bytes": "network_received_bytes_per_s",
    "network_sent_bytes": "network_sent_bytes_per_s",
}


def local_node() -> str:
    """Return the hostname of this machine."""
    return socket.gethostname()


def read_counters() -> dict[str, float]:
    """Read CPU seconds, and disk and network bytes, since this machine was started."""
    cpu = psutil.cpu_times()
    counters = {
        # Time of guests is part of that of users.
        "cpu_busy_s": cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq + cpu.steal,
        "cpu_total_s": sum(cpu) - cpu.guest - cpu.guest_nice,
    }
    if (disk := psutil.disk_io_counters()) is not None:
        counters |= {"disk_read_bytes": disk.read_bytes, "disk_written_bytes": disk.write_bytes}
    if (network := psutil.net_io_counters()) is not None:
        counters |= {"network_received_bytes": network.bytes_recv, "network_sent_bytes": network.bytes_sent}
    return {name: float(value) for name, value in counters.items()}


def compute_rates(before: Mapping[str, float], after: Mapping[str, float], took_s: float) -> dict[str, float]:
    """Compute CPU use and bytes per second between two readings; none across a restart of the machine."""
    grown = {name: value - before[name] for name, value in after.items() if name in before}
    if took_s <= 0 or any(value < 0 for value in grown.values()):
        return {}
    rates = {rate: grown[name] / took_s for name, rate in _RATES.items() if name in grown}
    if grown.get("cpu_total_s", 0) > 0:
        rates["cpu_percent"] = 100 * grown["cpu_busy_s"] / grown["cpu_total_s"]
    return rates


def measure_levels(data_root: Path) -> dict[str, float]:
    """Measure memory, the data root's disk and the devices of this machine as they are now."""
    used, total = measure_memory()
    figures: dict[str, float] = {"memory_used_bytes": used, "memory_total_bytes": total}
    free, size = measure_disk(data_root)
    if free is not None and size is not None:
        figures |= {"disk_used_bytes": size - free, "disk_total_bytes": size}
    return figures | describe_gpus(list_gpus())


def describe_node(node: RayNode) -> dict[str, float]:
    """Return the metrics of a node of the cluster."""
    return {**node.figures, **describe_gpus(node.devices)}


def describe_gpus(devices: Sequence[GpuRead | GpuDevice]) -> dict[str, float]:
    """Describe GPUs as ``gpu<index>_…``; what a device doesn't report is missing."""
    found = {}
    for device in devices:
        for name in ("utilization_percent", "memory_used_bytes", "memory_total_bytes", "power_watts"):
            value = getattr(device, name)
            if value is not None:
                found[f"gpu{device.index}_{name}"] = float(value)
    return found


def list_processes() -> list[dict[str, Any]]:
    """List the largest processes of this machine: pid, start (Unix time), name, job and resident bytes.

    Names are those of modules and programs; arguments are left out, because they may hold secrets.
    """
    sizes = []
    for process in psutil.process_iter():
        try:
            size = process.memory_info().rss
            if size >= _LISTED_BYTES:
                sizes.append((size, process.pid, process.create_time()))
        except psutil.Error:
            continue  # it has ended, or is not ours to look at
    largest = sorted(sizes, reverse=True)[:_LISTED_PROCESSES]
    return [
        {"pid": pid, "started_at": round(started, 2), "memory_bytes": size, **_describe(pid, round(started))}
        for size, pid, started in largest
    ]


@lru_cache(maxsize=256)
def _describe(pid: int, _started: int) -> dict[str, Any]:
    """Describe a process by name and job; its start tells it from a later one with the same pid."""
    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        words = []
    job = _JOB.search(" ".join(words))
    return {"name": name_process(words) or f"pid {pid}", "job_id": job.group() if job else None}


def name_process(words: Sequence[str]) -> str:
    """Return a short name for a command line: its own title, its module, or its program and script."""
    if not words:
        return ""
    if len(words) == 1 or words[0].startswith("ray::"):
        return words[0].strip()[:80]  # a process that has given itself a title
    program = Path(words[0]).name
    if "-m" in words[:-1]:
        at = words.index("-m") + 1
        follows = words[at + 1 : at + 2]
        is_command = bool(follows) and re.fullmatch(r"[a-z][a-z_-]*", follows[0]) is not None
        return " ".join([words[at], *(follows if is_command else [])])[:80]
    scripts = [Path(word).name for word in words[1:3] if not word.startswith("-") and "/" in word]
    return " ".join([program, *scripts[:1]])[:80]


def now_on_the_grid(step_s: float) -> float:
    """Return the current Unix time in seconds, rounded down to a multiple of ``step_s``."""
    return time.time() // step_s * step_s
