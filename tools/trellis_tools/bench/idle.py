"""What a platform costs that nobody uses: processor time and memory of all its services, Ray included."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import psutil
from trellis_cli.services.platform import load_platform
from trellis_cli.services.service import Service
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.temporary import temporary_platform

from trellis_tools.bench.peak_memory import pss
from trellis_tools.bench.result import Result
from trellis_tools.chaos.processes import list_tree

CPU_LIMIT_PERCENT = 1.0
MEMORY_LIMIT_GB = 1.2
#: What a start leaves to be done, such as reading libraries ahead, is over by then.
_SETTLE_S = 60.0
_WATCHED_S = 60.0
#: Processes that are named with their memory.
_LARGEST = 20


def measure_idle() -> Iterator[Result]:
    """Start a platform, leave it alone, and measure it for a minute."""
    with temporary_platform():
        supervisor = Supervisor(load_platform(), lambda _: None)
        supervisor.watch()
        services = [*supervisor.services, supervisor.watcher]
        time.sleep(_SETTLE_S)
        before, started = _cpu_seconds(services), time.monotonic()
        time.sleep(_WATCHED_S)
        after, took_s = _cpu_seconds(services), time.monotonic() - started
        memory = {each.name: _memory_gb(each) for each in services}
    percent = {name: 100 * (after[name] - before[name]) / took_s for name in after}
    totals = {name: sum(by_process.values()) for name, by_process in memory.items()}
    largest = {
        f"{name}: {each}": gb for name, by_process in memory.items() for each, gb in by_process.items()
    }
    shown = dict(sorted(largest.items(), key=lambda item: -item[1])[:_LARGEST])
    yield _result("idle_cpu", percent, CPU_LIMIT_PERCENT, "% core")
    yield _result("idle_memory", totals, MEMORY_LIMIT_GB, "GB PSS", shown)


def _cpu_seconds(services: list[Service]) -> dict[str, float]:
    """Sum the CPU seconds of each service's processes, including children that ended."""
    return {each.name: sum(map(_seconds, list_tree(each.pid))) for each in services}


def _seconds(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


def _memory_gb(service: Service) -> dict[str, float]:
    """Measure the memory of a service's processes, added up by process name."""
    found: Counter[str] = Counter()
    for process in list_tree(service.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            found[_name(process)] += pss(process)
    return {name: size / 1e9 for name, size in found.items()}


def _name(process: psutil.Process) -> str:
    """Return a short name for a process: its title, or the module or file that it runs."""
    words = [word for word in " ".join(process.cmdline()).split() if not word.startswith("--")]
    runs = [Path(word).name for word in words[1:] if word not in ("-u", "-m", "-c")]
    is_python = bool(words) and Path(words[0]).name.startswith("python")
    return (runs[0] if is_python and runs else Path(words[0]).name if words else process.name())[:40]


def _result(
    name: str,
    by_service: dict[str, float],
    limit: float,
    unit: str,
    more: Mapping[str, float] = MappingProxyType({}),
) -> Result:
    details = {each: round(value, 3) for each, value in {**by_service, **more}.items()}
    return Result(name, sum(by_service.values()), limit, unit, details=details)
