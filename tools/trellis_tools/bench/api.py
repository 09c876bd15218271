"""What the API promises: quick answers, quick ingest, quick charts, quick news."""

import gzip
import json
import math
import statistics
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
from trellis_cli.client import API

from trellis_tools.bench.light_platform import LightPlatform
from trellis_tools.bench.result import Result

POST_LIMIT_MS = 50.0
INGEST_POINTS_PER_S = 20_000.0
CHART_LIMIT_MS = 150.0
EVENT_LIMIT_S = 1.0
CHART_POINTS = 1_000_000
#: Batches as the shipper makes them: at most 500 events.
EVENTS_PER_BATCH = 500


def measure_post_jobs(platform: LightPlatform) -> Result:
    """Measure the median time of POST /jobs, including composition against the engine's schema."""
    request = platform.job_request()
    platform.client.post("/jobs", request)
    times = []
    for _ in range(60):
        started = time.perf_counter()
        platform.client.post("/jobs", request)
        times.append((time.perf_counter() - started) * 1000)
    return Result("post_jobs", statistics.median(times), POST_LIMIT_MS, "ms")


class Reporter:
    """Sends batches as a running job does, with its token and in order."""

    def __init__(self, platform: LightPlatform) -> None:
        self.job, token = platform.launch_without_training()
        self._http = httpx.Client(
            base_url=platform.client.url,
            headers={"Authorization": f"Bearer {token}", "Content-Encoding": "gzip"},
            timeout=60.0,
        )
        #: Number of the last batch.
        self.sequence = 0

    def pack(self, events: list[dict[str, Any]]) -> bytes:
        """Build the next batch of events and compress it."""
        self.sequence += 1
        batch = {"attempt": 1, "sequence": self.sequence, "events": events}
        return gzip.compress(json.dumps(batch).encode(), compresslevel=1)

    def send(self, body: bytes) -> None:
        """Report a packed batch."""
        answer = self._http.post(f"{API}/ingest/jobs/{self.job}/batches", content=body)
        answer.raise_for_status()


def metric_events(first_step: int, count: int, keys: list[str]) -> list[dict[str, Any]]:
    """Build metrics events, one for each step."""
    now = datetime.now(UTC).isoformat()
    return [
        {
            "kind": "metrics",
            "time": now,
            "step": step,
            "values": {key: math.sin(step / 50 + number) for number, key in enumerate(keys)},
        }
        for step in range(first_step, first_step + count)
    ]


def measure_ingest(platform: LightPlatform) -> Result:
    """Measure metric points per second through HTTP into the database: 40 keys a step, as in verl."""
    reporter = Reporter(platform)
    keys = [f"actor/metric_{number}" for number in range(40)]
    # The load is made beforehand: what is measured is the platform, not this client.
    bodies = [reporter.pack(metric_events(number * 100, 100, keys)) for number in range(60)]
    reporter.send(bodies[0])
    started = time.perf_counter()
    for body in bodies[1:]:
        reporter.send(body)
    took = time.perf_counter() - started
    points = (len(bodies) - 1) * 100 * len(keys)
    return Result("ingest", points / took, INGEST_POINTS_PER_S, "points/s", is_more_better=True)


def measure_chart(platform: LightPlatform) -> Result:
    """Measure the median time of one chart over a million points of one key."""
    reporter = Reporter(platform)
    for first in range(0, CHART_POINTS, EVENTS_PER_BATCH):
        reporter.send(reporter.pack(metric_events(first, EVENTS_PER_BATCH, ["critic/score/mean"])))
    times = []
    for _ in range(9):
        started = time.perf_counter()
        path = f"/jobs/{reporter.job}/metrics"
        answer = platform.client.get(path, keys="critic/score/mean", max_points=1000)
        times.append((time.perf_counter() - started) * 1000)
    (series,) = answer["series"]
    assert series["total_points"] == CHART_POINTS, "the chart does not cover all points"  # noqa: S101
    return Result("chart_million_points", statistics.median(times), CHART_LIMIT_MS, "ms")


def measure_event(platform: LightPlatform) -> Result:
    """Measure the median time from a job's report to the line of the browser's event stream."""
    reporter = Reporter(platform)
    seen: dict[int, float] = {}
    is_open = threading.Event()
    rounds = 20

    def listen() -> None:
        headers = {"Authorization": platform.client.token_header}
        url = f"{platform.client.url}{API}/jobs/{reporter.job}/events?after=0"
        with httpx.stream("GET", url, headers=headers, timeout=30.0) as answer:
            is_open.set()
            for step in _metric_steps(answer.iter_lines()):
                seen.setdefault(step, time.perf_counter())
                if step == rounds:
                    return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    is_open.wait(10)
    sent: dict[int, float] = {}
    for step in range(1, rounds + 1):
        body = reporter.pack(metric_events(step, 1, ["critic/score/mean"]))
        sent[step] = time.perf_counter()
        reporter.send(body)
        # Not in step with the server's own clock.
        time.sleep(0.13 + 0.017 * (step % 7))
    listener.join(20)
    times = [seen[step] - sent[step] for step in sent if step in seen]
    assert len(times) == rounds, f"only {len(times)} of {rounds} events arrived"  # noqa: S101
    return Result("event_to_browser", statistics.median(times), EVENT_LIMIT_S, "s")


def _metric_steps(lines: Iterator[str]) -> Iterator[int]:
    kind = ""
    for line in lines:
        if line.startswith("event:"):
            kind = line.partition(":")[2].strip()
        elif line.startswith("data:") and kind == "metrics":
            yield int(json.loads(line.partition(":")[2])["step"])
