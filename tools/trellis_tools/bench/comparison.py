"""Opening the comparison of 20 long runs: its tables, the curves that it charts unasked, and its seeds."""

import math
import statistics
import time

from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.timing import store as timing_store

from trellis_tools.bench.light_platform import LightPlatform
from trellis_tools.bench.result import Result

OPEN_LIMIT_MS = 300.0
RUNS, STEPS = 20, 100_000
#: As many metrics as the page charts unasked, and what places their steps in time and among tokens.
CHARTED = (
    "critic/score/mean",
    "actor/ppo_kl",
    "actor/pg_loss",
    "actor/entropy",
    "actor/grad_norm",
    "response_length/mean",
)
SECONDS, TOKENS = "timing_s/step", "perf/total_num_tokens"
#: As the page asks.
MAX_POINTS = 400
_STEPS_PER_WRITE = 10_000
#: When the first step ended: seconds since 1970.
_ENDED_AT = 1.7e9
_ROUNDS = 9


def measure_comparison(platform: LightPlatform) -> Result:
    """Measure the median time of what the page asks for to compare 20 runs, 10⁵ points a curve.

    The three requests are added up, though the page sends the last two at once.
    """
    jobs = [platform.client.post("/jobs", platform.job_request(seed=seed))["id"] for seed in range(RUNS)]
    _write_curves(platform, jobs)
    ids = {"ids": ",".join(jobs)}
    query = {**ids, "keys": list(CHARTED), "max_points": MAX_POINTS, "clock": "true"}
    # What is loaded once is not measured: the statistics of the seeds.
    _time(platform, "/jobs/compare/seeds", **ids)
    times: dict[str, list[float]] = {"tables": [], "curves": [], "seeds": [], "curves of one metric": []}
    for _ in range(_ROUNDS):
        times["tables"].append(_time(platform, "/jobs/compare", **ids))
        times["curves"].append(_time(platform, "/jobs/compare/metrics", **query))
        times["seeds"].append(_time(platform, "/jobs/compare/seeds", **ids))
        single = {**query, "keys": [CHARTED[0]]}
        times["curves of one metric"].append(_time(platform, "/jobs/compare/metrics", **single))
    found = platform.client.get("/jobs/compare/metrics", **query)["runs"]
    totals = {series["total_points"] for run in found for series in run["series"]}
    counts = (len(found), sum(len(run["series"]) for run in found))
    assert (counts, totals) == ((RUNS, RUNS * len(CHARTED)), {STEPS}), "curves are missing"  # noqa: S101
    assert all(run["clock"]["at"] for run in found), "clocks are missing"  # noqa: S101
    asked = [sum(row) for row in zip(times["tables"], times["curves"], times["seeds"], strict=True)]
    details = {f"{name}, ms": round(statistics.median(own), 1) for name, own in times.items()}
    return Result("compare_20_runs", statistics.median(asked), OPEN_LIMIT_MS, "ms", details=details)


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
                metrics = [(step, _measure(step, number)) for step in steps]
                with database.write() as session:
                    job = service.get_locked_job(session, job_id=job_id)
                    metric_store.write(session, job=job, metrics=metrics)
                    times = [(step, _ENDED_AT + float(step)) for step in steps]
                    timing_store.write_times(session, job_id=job_id, attempt=1, times=times)
    finally:
        database.dispose()


def _measure(step: int, number: int) -> dict[str, float]:
    wave = math.sin(step / 500 + number)
    return {key: wave + place for place, key in enumerate(CHARTED)} | {SECONDS: 1.0, TOKENS: 4096.0}
