"""What a platform costs that nobody uses: processor time and memory of all its services, Ray included."""

import time
from collections.abc import Iterator

import psutil

from trellis_cli.bench.peak_memory import pss
from trellis_cli.bench.result import Result
from trellis_cli.chaos.processes import list_tree
from trellis_cli.services.platform import load_platform
from trellis_cli.services.service import Service
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.temporary import temporary_platform

CPU_LIMIT_PERCENT = 1.0
MEMORY_LIMIT_GB = 1.2
#: What a start leaves to be done, such as reading libraries ahead, is over by then.
_SETTLE_S = 60.0
_WATCHED_S = 60.0


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
        memory = {each.name: sum(map(pss, list_tree(each.pid))) / 1e9 for each in services}
    percent = {name: 100 * (after[name] - before[name]) / took_s for name in after}
    yield _result("idle_cpu", percent, CPU_LIMIT_PERCENT, "% core")
    yield _result("idle_memory", memory, MEMORY_LIMIT_GB, "GB PSS")


def _cpu_seconds(services: list[Service]) -> dict[str, float]:
    """Seconds that the processes of each service have taken, those of children that ended included."""
    return {each.name: sum(map(_seconds, list_tree(each.pid))) for each in services}


def _seconds(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


def _result(name: str, by_service: dict[str, float], limit: float, unit: str) -> Result:
    details = {service: round(value, 3) for service, value in by_service.items()}
    return Result(name, sum(by_service.values()), limit, unit, details=details)
