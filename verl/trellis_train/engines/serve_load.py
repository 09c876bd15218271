"""What a serving engine is at: requests, tokens per second, time to first token; read from its ``/metrics``.

vLLM's metrics: https://docs.vllm.ai/en/latest/design/metrics.html. They count from the start of the server;
figures over a time are differences of two looks.
"""

import logging
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from trellis_contracts.events import ServingLoadEvent

from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool

logger = logging.getLogger(__name__)

#: Between two looks, and the time that rates and times to first token are over, in seconds.
LOOK_INTERVAL_S = 5.0
WINDOW_S = 60.0
_TIMEOUT_S = 5.0
_FIRST_TOKEN = "vllm:time_to_first_token_seconds"  # noqa: S105 - no secret


@dataclass(frozen=True)
class Figures:
    """One look at an engine. All but the first three count from the start of the server."""

    running: int = 0
    waiting: int = 0
    kv_use: float = 0.0
    prompt_tokens: float = 0.0
    generated_tokens: float = 0.0
    requests: float = 0.0
    first_tokens: float = 0.0
    first_token_s: float = 0.0
    #: Of the histogram: how many first tokens came within so many seconds.
    first_token_buckets: Mapping[float, float] = field(default_factory=dict)


def read_figures(text: str) -> Figures:
    """Return the sums over the engines of a server (with data parallelism there are several).

    ``text`` is in Prometheus' text format. The use of the KV cache is that of the fullest engine.
    """
    sums: dict[str, float] = defaultdict(float)
    buckets: dict[float, float] = defaultdict(float)
    kv_use = 0.0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"{_FIRST_TOKEN}_bucket":
                buckets[float(sample.labels["le"])] += sample.value
            elif sample.name == "vllm:kv_cache_usage_perc":
                kv_use = max(kv_use, sample.value)
            else:
                sums[sample.name] += sample.value
    return Figures(
        running=int(sums["vllm:num_requests_running"]),
        waiting=int(sums["vllm:num_requests_waiting"]),
        kv_use=min(kv_use, 1.0),
        prompt_tokens=sums["vllm:prompt_tokens_total"],
        generated_tokens=sums["vllm:generation_tokens_total"],
        requests=sums["vllm:request_success_total"],
        first_tokens=sums[f"{_FIRST_TOKEN}_count"],
        first_token_s=sums[f"{_FIRST_TOKEN}_sum"],
        first_token_buckets=dict(buckets),
    )


class LoadMeter:
    """Looks of the last minute, and what they come to."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Figures]] = deque()

    def measure(self, at_s: float, figures: Figures) -> ServingLoadEvent:
        """Return the load at ``at_s``, in seconds of a clock that never jumps."""
        # The oldest look that is kept is as old as the window, or just older: it is where the window begins.
        while len(self._looks) > 1 and self._looks[1][0] <= at_s - WINDOW_S:
            self._looks.popleft()
        self._looks.append((at_s, figures))
        began_s, first = self._looks[0]
        window_s = at_s - began_s
        came = figures.first_tokens - first.first_tokens
        return ServingLoadEvent(
            time=now(),
            running=figures.running,
            waiting=figures.waiting,
            kv_use=figures.kv_use,
            window_s=window_s,
            requests=int(figures.requests - first.requests),
            prompt_tokens_per_s=_rate(figures.prompt_tokens - first.prompt_tokens, window_s),
            generated_tokens_per_s=_rate(figures.generated_tokens - first.generated_tokens, window_s),
            first_token_mean_s=(figures.first_token_s - first.first_token_s) / came if came > 0 else None,
            first_token_p95_s=_quantile(0.95, first.first_token_buckets, figures.first_token_buckets),
        )


def _rate(count: float, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def _quantile(share: float, before: Mapping[float, float], after: Mapping[float, float]) -> float | None:
    """Estimate a quantile as Prometheus' ``histogram_quantile`` does: evenly spread within a bucket."""
    counts = [(bound, after[bound] - before.get(bound, 0.0)) for bound in sorted(after)]
    total = counts[-1][1] if counts else 0.0
    if total <= 0:
        return None
    wanted, low, passed = share * total, 0.0, 0.0
    for bound, count in counts:
        if count >= wanted:
            if bound == float("inf"):
                return low  # slower than the largest bound: at least that
            return low + (bound - low) * (wanted - passed) / (count - passed)
        low, passed = bound, count
    return low


class LoadReporter(threading.Thread):
    """Reports the load every few seconds, as long as there is any, and once when it has ended.

    A look that fails is left out: whether the engine lives is watched elsewhere.
    """

    def __init__(self, url: str, key: str, spool: Spool) -> None:
        super().__init__(name="serving load", daemon=True)
        self._url, self._key, self._spool = url, key, spool
        self._ended = threading.Event()
        self._meter = LoadMeter()
        self._was_busy = True  # so that the first report says that it is idle

    def run(self) -> None:
        """Report until ``end`` is called."""
        while not self._ended.wait(LOOK_INTERVAL_S):
            try:
                self.report()
            except (OSError, ValueError) as error:
                logger.info("the engine's metrics can't be read: %s", error)

    def report(self) -> None:
        """Look once, and report unless nothing has happened since the last report."""
        load = self.measure()
        is_busy = bool(
            load.running
            or load.waiting
            or load.requests
            or load.generated_tokens_per_s
            or load.prompt_tokens_per_s
        )
        if is_busy or self._was_busy:
            self._spool.write(load)
        self._was_busy = is_busy

    def measure(self) -> ServingLoadEvent:
        """Look once. Raises ``OSError`` where the engine does not answer, ``ValueError`` for no metrics."""
        return self._meter.measure(time.monotonic(), read_figures(self._fetch()))

    def end(self) -> None:
        """Stop reporting."""
        self._ended.set()

    def _fetch(self) -> str:
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self._url}/metrics", headers={"Authorization": f"Bearer {self._key}"}
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return str(answer.read().decode())
