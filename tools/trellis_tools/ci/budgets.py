"""Time budgets of the fast set: seconds a suite, scaled to the speed of the machine.

``python -m trellis_tools.ci.budgets`` holds the last run of the fast set in this checkout against them; it is
the check ``budgets``.
"""

import hashlib
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis_tools.ci.results import FAST_FOLDER, read_json, write_json
from trellis_tools.ci.runner import list_budgets

#: What the probe takes on the machine that the budgets were measured on (two cores of an AMD EPYC, AVX2).
REFERENCE_S = 0.136
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


def measure_slowdown() -> float:
    """Measure how many times slower than the reference one core is now; never below 1."""
    return max(1.0, min(_probe() for _ in range(5)) / REFERENCE_S)


def _probe() -> float:
    """Time a fixed amount of interpreted code and of hashing, in seconds."""
    started = time.perf_counter()
    total = 0
    for number in range(1_000_000):
        total += number * number % 7
    hashlib.sha256(bytes(24_000_000)).digest()
    return time.perf_counter() - started


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
