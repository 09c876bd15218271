"""A platform that was used for years: charts among many metric points, lists of many jobs, many viewers."""

import asyncio
import math
import random
import statistics
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import insert
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.models import Job, JobTag
from trellis_cli.client import API
from trellis_contracts.states import JobState

from trellis_tools.bench.api import Reporter, metric_events
from trellis_tools.bench.light_platform import LightPlatform
from trellis_tools.bench.peak_memory import pss
from trellis_tools.bench.result import Result
from trellis_tools.chaos.processes import list_tree

CHART_LIMIT_MS = 200.0
LIST_LIMIT_MS = 200.0
#: What 500 open streams may add to the API's memory.
VIEWERS_LIMIT_MB = 250.0
DEFAULT_POINTS, DEFAULT_JOBS, DEFAULT_VIEWERS = 10_000_000, 100_000, 500
#: Points of one run: keys and steps of a long training.
KEYS, STEPS = 40, 25_000
_STEPS_PER_WRITE = 2_500
#: Keys of one page of charts, and points of each, as the page asks.
_CHARTED, _MAX_POINTS = 6, 400
_CHARTS, _PAGES = 60, 300
_JOBS_PER_WRITE = 2_000
_SEED = 20_240_301
_OPEN_TIMEOUT_S = 120.0
#: How long viewers look on while a run reports.
_REPORTS = 40
_REPORT_PAUSE_S = 0.25


def measure_points(platform: LightPlatform, points: int) -> Iterator[Result]:
    """Measure charts of random runs in a store of so many points; the slowest counts."""
    began = time.perf_counter()
    jobs = _fill_points(platform, points)
    filled_s = time.perf_counter() - began
    draw = random.Random(_SEED)  # noqa: S311 - places, not secrets
    times = []
    for _ in range(_CHARTS):
        keys = [_key(each) for each in draw.sample(range(KEYS), _CHARTED)]
        started = time.perf_counter()
        answer = platform.client.get(f"/jobs/{draw.choice(jobs)}/metrics", keys=keys, max_points=_MAX_POINTS)
        times.append((time.perf_counter() - started) * 1000 / _CHARTED)
        assert len(answer["series"]) == _CHARTED, "a chart is missing"  # noqa: S101
    details = {"points": points, "runs": len(jobs), "filled_in_s": round(filled_s, 1), **_spread(times)}
    yield Result("points_chart", max(times), CHART_LIMIT_MS, "ms", details=details)


def _key(number: int) -> str:
    return f"actor/metric_{number}"


def _fill_points(platform: LightPlatform, points: int) -> list[str]:
    """Write runs as their reports do, into the store directly: over HTTP it would take hours."""
    jobs: list[str] = []
    left = points
    database = Database(platform.settings)
    try:
        while left > 0:
            jobs.append(platform.client.post("/jobs", platform.job_request())["id"])
            steps = min(STEPS, math.ceil(left / KEYS))
            for first in range(0, steps, _STEPS_PER_WRITE):
                metrics = [
                    (step, {_key(key): math.sin(step / 500 + key) for key in range(KEYS)})
                    for step in range(first, min(first + _STEPS_PER_WRITE, steps))
                ]
                with database.write("benchmark") as session:
                    job = service.get_locked_job(session, job_id=jobs[-1])
                    metric_store.write(session, job=job, metrics=metrics)
            left -= steps * KEYS
    finally:
        database.dispose()
    return jobs


def measure_job_list(platform: LightPlatform, jobs: int) -> Iterator[Result]:
    """Measure pages of a list of so many jobs, in the orders and with the filters of the page."""
    began = time.perf_counter()
    _fill_jobs(platform, jobs)
    filled_s = time.perf_counter() - began
    times: dict[str, list[float]] = {}
    draw = random.Random(_SEED)  # noqa: S311 - places, not secrets
    cursors: list[str | None] = [None]
    for number in range(_PAGES):
        queries = _queries(draw)
        name, query = queries[number % len(queries)]
        if name == "next page":
            query = {**query, "cursor": draw.choice(cursors)} if cursors[-1] else query
        started = time.perf_counter()
        page = platform.client.get("/jobs", limit=50, **query)
        times.setdefault(name, []).append((time.perf_counter() - started) * 1000)
        if name in ("newest", "next page") and page["next_cursor"]:
            cursors.append(page["next_cursor"])
    every = sorted(each for some in times.values() for each in some)
    slowest = {f"{name}, slowest ms": round(max(some), 1) for name, some in times.items()}
    details = {"jobs": jobs, "filled_in_s": round(filled_s, 1), **_spread(every), **slowest}
    p99 = every[min(len(every) - 1, int(len(every) * 0.99))]
    yield Result("jobs_list_p99", p99, LIST_LIMIT_MS, "ms", details=details)


def _queries(draw: random.Random) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("newest", {}),
        ("next page", {}),
        ("by state", {"state": draw.choice(["succeeded", "failed", "stopped"])}),
        ("by tag", {"tag": f"tag-{draw.randrange(20)}"}),
        ("by text", {"text": f"run {draw.randrange(1000)}"}),
        ("by name", {"sort": "name", "order": "asc"}),
    ]


def _fill_jobs(platform: LightPlatform, jobs: int) -> None:
    """Write copies of a job that was asked for, as they stand when they are over."""
    first = platform.client.post("/jobs", platform.job_request())["id"]
    database = Database(platform.settings)
    try:
        with database.read() as session:
            template = service.get_job(session, job_id=first).model_dump()
        now = utc_now()
        states = (JobState.SUCCEEDED, JobState.FAILED, JobState.STOPPED)
        for start in range(0, jobs, _JOBS_PER_WRITE):
            rows = []
            for number in range(start, min(start + _JOBS_PER_WRITE, jobs)):
                at = now - timedelta(minutes=jobs - number)
                times = dict.fromkeys(("created_at", "queued_at", "launched_at", "started_at"), at)
                over = {"state": states[number % 3], "finished_at": at + timedelta(seconds=30)}
                rows.append({**template, "id": new_id("job"), "name": f"run {number}", **times, **over})
            tags = [
                {"job_id": row["id"], "tag": f"tag-{number % 20}"} for number, row in enumerate(rows, start)
            ]
            with database.write("benchmark") as session:
                session.execute(insert(Job), rows)
                session.execute(insert(JobTag), tags)
    finally:
        database.dispose()


def measure_viewers(platform: LightPlatform, viewers: int) -> Iterator[Result]:
    """Measure what so many open streams of one run add to the API's memory, and whether it comes back."""
    reporter = Reporter(platform)
    reporter.send(reporter.pack(_events(0, 1)))
    asyncio.run(_look_on(platform, reporter, viewers=5))  # what the first viewers load, all share
    before = _memory_mb(platform)
    during, events = asyncio.run(_look_on(platform, reporter, viewers))
    time.sleep(5)
    after = _memory_mb(platform)
    details = {
        "viewers": viewers,
        "events, all viewers": events,
        "before, MB": round(before, 1),
        "during, MB": round(during, 1),
        "after, MB": round(after, 1),
    }
    assert events >= viewers * _REPORTS, "viewers have missed events"  # noqa: S101
    limit = VIEWERS_LIMIT_MB * viewers / DEFAULT_VIEWERS
    yield Result("viewers_memory", max(0.0, during - before), limit, "MB", details=details)


async def _look_on(platform: LightPlatform, reporter: Reporter, viewers: int) -> tuple[float, int]:
    """Let viewers follow a run that reports; the API's largest memory, and the events that came."""
    opened = 0
    url = f"{platform.client.url}{API}/jobs/{reporter.job}/events"
    headers = {"Authorization": platform.client.token_header}

    async def view(client: httpx.AsyncClient) -> int:
        nonlocal opened
        seen = 0
        async with client.stream("GET", url, headers=headers) as answer:
            answer.raise_for_status()
            opened += 1
            async for line in answer.aiter_lines():
                seen += line == "event: metrics"
                if seen == _REPORTS:
                    break
        return seen

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=_OPEN_TIMEOUT_S, limits=limits) as client:
        tasks = [asyncio.create_task(view(client)) for _ in range(viewers)]
        deadline = time.monotonic() + _OPEN_TIMEOUT_S
        while opened < viewers and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        peak = 0.0
        for _ in range(_REPORTS):
            await asyncio.to_thread(reporter.send, reporter.pack(_events(reporter.sequence, 1)))
            peak = max(peak, await asyncio.to_thread(_memory_mb, platform))
            await asyncio.sleep(_REPORT_PAUSE_S)
        seen = await asyncio.wait_for(asyncio.gather(*tasks), _OPEN_TIMEOUT_S)
    return peak, sum(seen)


def _events(first_step: int, count: int) -> list[dict[str, Any]]:
    return metric_events(first_step, count, [_key(each) for each in range(KEYS)])


def _memory_mb(platform: LightPlatform) -> float:
    return sum(map(pss, list_tree(platform.api_pid))) / 1e6


def _spread(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "median_ms": round(statistics.median(ordered), 1),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)], 1),
        "slowest_ms": round(ordered[-1], 1),
    }
