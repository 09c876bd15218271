"""Time budgets of the fast set: seconds a suite, scaled to the speed of the machine.

``python -m trellis_tools.ci.budgets`` holds the last run of the fast set in this checkout against them; it is
the check ``budgets``.
"""

import hashlib
import json
import statistics
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from trellis_tools.ci.results import FAST_FOLDER, read_json, write_json
from trellis_tools.ci.runner import list_budgets

#: CPU seconds of the probe where the budgets were measured (two cores of an Intel Xeon, AVX-512).
REFERENCE_S = 0.165
#: Between two probes while tests run.
EVERY_S = 15.0
#: Over its budget a suite is warned about; over this many times its budget it fails.
TOLERANCE = 1.25
RECORD = FAST_FOLDER / "seconds.json"


@dataclass(frozen=True)
class SuiteTime:
    """How long a suite took and which of its tests took longest."""

    seconds: float
    #: Names and seconds, the slowest first.
    slowest: list[tuple[str, float]]


@dataclass(frozen=True)
class Overrun:
    """A suite that took longer than its budget."""

    suite: str
    seconds: float
    #: Of this machine.
    budget_s: float
    slowest: list[tuple[str, float]]

    @property
    def is_failure(self) -> bool:
        """Whether it is beyond the tolerance."""
        return self.seconds > TOLERANCE * self.budget_s

    def __str__(self) -> str:
        tests = "".join(f"\n    {seconds:6.1f} s  {name}" for name, seconds in self.slowest[:5])
        over = self.seconds / self.budget_s - 1
        return (
            f"{self.suite}: {self.seconds:.0f} s, {over:.0%} over its budget of {self.budget_s:.0f} s{tests}"
        )


class SpeedWatch:
    """Measures how many times slower than the reference a core is while the tests run.

    A core that is fast before they start may be shared with other machines a minute later, so the probe runs
    every few seconds beside them. It counts its own CPU time: waiting for the tests is not slowness. Time
    that the host gave to other machines is added (``steal`` of ``/proc/stat``, where the system has it).
    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._samples = [_probe()]
        self._stolen, self._all = _read_stolen()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def slowdown(self) -> float:
        """How many times slower until now; never below 1."""
        stolen, all_ticks = _read_stolen()
        left = 1 - (stolen - self._stolen) / max(1, all_ticks - self._all)
        return max(1.0, statistics.median(self._samples) / REFERENCE_S / max(left, 0.1))

    def _sample(self) -> None:
        while not self._is_over.wait(self._every_s):
            self._samples.append(_probe())


def measure_slowdown() -> float:
    """Measure how many times slower than the reference one core is now; never below 1."""
    return max(1.0, min(_probe() for _ in range(5)) / REFERENCE_S)


def _probe() -> float:
    """Measure the CPU seconds of a fixed amount of interpreted code, hashing and JSON of many objects."""
    started = time.thread_time()
    total = 0
    for number in range(1_000_000):
        total += number * number % 7
    hashlib.sha256(bytes(24_000_000)).digest()
    json.loads(json.dumps([{"step": number, "value": number / 3} for number in range(40_000)]))
    return time.thread_time() - started


def _read_stolen() -> tuple[int, int]:
    """Read the ticks that the host gave to other machines, and all ticks, since the system started."""
    with suppress(OSError), open("/proc/stat", encoding="ascii") as file:
        ticks = [int(each) for each in file.readline().split()[1:9]]
        return (ticks[7], sum(ticks)) if len(ticks) == 8 else (0, 0)
    return 0, 0


def record(suites: dict[str, SuiteTime], slowdown: float, path: Path = RECORD) -> None:
    """Keep what a run of the fast set measured."""
    write_json(path, {"slowdown": slowdown, "suites": {name: asdict(each) for name, each in suites.items()}})


def find_overruns(suites: dict[str, SuiteTime], slowdown: float) -> list[Overrun]:
    """Find the suites over their budget on a machine of this speed; suites without a budget are left out."""
    return [
        Overrun(name, suites[name].seconds, budget_s * slowdown, suites[name].slowest)
        for name, budget_s in list_budgets().items()
        if name in suites and suites[name].seconds > budget_s * slowdown
    ]


def read_record(path: Path = RECORD) -> tuple[dict[str, SuiteTime], float] | None:
    """Read what the last run of the fast set measured; None before the first run."""
    found: dict[str, Any] | None = read_json(path)
    if found is None:
        return None
    suites = {
        name: SuiteTime(each["seconds"], [(test, seconds) for test, seconds in each["slowest"]])
        for name, each in found["suites"].items()
    }
    return suites, found["slowdown"]


def main() -> int:
    """Print every suite over its budget; 1 where one is beyond the tolerance."""
    found = read_record()
    if found is None:
        print("the fast set has not run in this checkout yet")
        return 0
    overruns = find_overruns(*found)
    for each in overruns:
        print(each)
    return 1 if any(each.is_failure for each in overruns) else 0


if __name__ == "__main__":
    sys.exit(main())
