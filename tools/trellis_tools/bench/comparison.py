"""Opening the comparison of 20 long runs: its tables, and the curves of one metric with their clock."""

import math
import statistics
import time

from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store

from trellis_tools.bench.light_platform import LightPlatform
from trellis_tools.bench.result import Result

OPEN_LIMIT_MS = 300.0
RUNS, STEPS = 20, 100_000
#: What the page charts, and what it reads beside it to place steps in time.
SCORE, CLOCK = "critic/score/mean", "perf/time_per_step"
#: As the page asks.
MAX_POINTS = 400
_STEPS_PER_WRITE = 10_000
_ROUNDS = 9


def measure_comparison(platform: LightPlatform) -> Result:
    """Measure the median time of both requests of the page that compares 20 runs, 10⁵ points a curve."""
    jobs = [platform.client.post("/jobs", platform.job_request())["id"] for _ in range(RUNS)]
    _write_curves(platform, jobs)
    query = {"ids": ",".join(jobs), "keys": [SCORE, CLOCK], "max_points": MAX_POINTS}
    tables, curves = [], []
    for _ in range(_ROUNDS):
        tables.append(_time(platform, "/jobs/compare", ids=query["ids"]))
        curves.append(_time(platform, "/jobs/compare/metrics", **query))
    found = platform.client.get("/jobs/compare/metrics", **query)["runs"]
    totals = {series["total_points"] for run in found for series in run["series"]}
    assert (len(found), totals) == (RUNS, {STEPS}), "the curves do not cover all points"  # noqa: S101
    both = [a + b for a, b in zip(tables, curves, strict=True)]
    details = {
        "tables, ms": round(statistics.median(tables), 1),
        "curves, ms": round(statistics.median(curves), 1),
    }
    return Result("compare_20_runs", statistics.median(both), OPEN_LIMIT_MS, "ms", details=details)


def _time(platform: LightPlatform, path: str, **query: object) -> float:
    started = time.perf_counter()
    platform.client.get(path, **query)
    return (time.perf_counter() - started) * 1000


def _write_curves(platform: LightPlatform, jobs: list[str]) -> None:
    """Write curves to the database directly: millions of points over HTTP would take minutes."""
    database = Database(platform.settings)
    try:
        for number, job_id in enumerate(jobs):
            for first in range(0, STEPS, _STEPS_PER_WRITE):
                steps = range(first, first + _STEPS_PER_WRITE)
                metrics = [(step, {SCORE: math.sin(step / 500 + number), CLOCK: 1.0}) for step in steps]
                with database.write() as session:
                    job = service.get_locked_job(session, job_id=job_id)
                    metric_store.write(session, job=job, metrics=metrics)
    finally:
        database.dispose()
