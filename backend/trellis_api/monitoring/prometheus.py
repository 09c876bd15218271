"""Figures for Prometheus: counters that the process keeps, and a look at jobs and probes at each scrape."""

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from trellis_contracts.states import JobState

from trellis_api.core.prometheus import LATENCY, REGISTRY, REQUESTS
from trellis_api.endpoints.schemas import EndpointLoad
from trellis_api.endpoints.service import EndpointCounts
from trellis_api.monitoring.probes import Probes
from trellis_api.monitoring.schemas import ComponentHealth


class StateCollector(Collector):
    """Jobs and endpoints by state, alarms by kind, health by component, read when Prometheus asks."""

    def __init__(
        self,
        count_jobs: Callable[[], dict[JobState, int]],
        count_alarms: Callable[[], dict[tuple[str, str], int]],
        count_endpoints: Callable[[], EndpointCounts],
        probes: Probes,
    ) -> None:
        self._count_jobs = count_jobs
        self._count_endpoints = count_endpoints
        self._count_alarms = count_alarms
        self._probes = probes

    def collect(self) -> Iterable[Metric]:
        """Yield the current metrics."""
        jobs = GaugeMetricFamily("trellis_jobs", "Jobs, by state.", labels=["state"])
        for state, count in self._count_jobs().items():
            jobs.add_metric([state.value], count)
        alarms = GaugeMetricFamily(
            "trellis_job_alarms", "Unfinished jobs with an active alarm.", labels=["code", "severity"]
        )
        for (code, severity), count in self._count_alarms().items():
            alarms.add_metric([code, severity], count)
        endpoints = GaugeMetricFamily("trellis_endpoints", "Endpoints, by state.", labels=["state"])
        found = self._count_endpoints()
        for name, count in found.by_state.items():
            endpoints.add_metric([name], count)
        up = GaugeMetricFamily("trellis_component_up", "1 while a component works.", labels=["component"])
        age = GaugeMetricFamily(
            "trellis_component_age_seconds", "Age of a component's measurement.", labels=["component"]
        )
        restarts = CounterMetricFamily(
            "trellis_service_restarts",
            "Starts of a service that had died, by its supervisor.",
            labels=["service"],
        )
        lost = GaugeMetricFamily(
            "trellis_service_given_up", "1 where the supervisor has given a service up.", labels=["service"]
        )
        for component in self._probes.components():
            for service in component.services:
                restarts.add_metric([service.name], service.restarts)
                lost.add_metric([service.name], float(service.state == "given_up"))
            if component.health is ComponentHealth.NOT_CONFIGURED or component.age_s is None:
                continue
            works = component.health in {ComponentHealth.OK, ComponentHealth.DEGRADED}
            up.add_metric([component.name], float(works))
            age.add_metric([component.name], component.age_s)
        return [jobs, alarms, endpoints, *_describe_loads(found.loads), up, age, restarts, lost]


def _describe_loads(loads: Mapping[str, EndpointLoad]) -> list[Metric]:
    """Return requests, tokens and times to first token of engines, by endpoint ID: no names here."""
    label = ["endpoint"]
    running = GaugeMetricFamily("trellis_endpoint_requests_running", "Requests in progress.", labels=label)
    waiting = GaugeMetricFamily(
        "trellis_endpoint_requests_waiting", "Requests in the engine's queue.", labels=label
    )
    cache = GaugeMetricFamily(
        "trellis_endpoint_kv_cache_usage", "Share of the KV cache in use, 0 to 1.", labels=label
    )
    speed = GaugeMetricFamily(
        "trellis_endpoint_tokens_per_second", "Over the last minute.", labels=[*label, "direction"]
    )
    first = GaugeMetricFamily(
        "trellis_endpoint_first_token_seconds",
        "Time to first token over the last minute.",
        labels=[*label, "statistic"],
    )
    for endpoint_id, load in loads.items():
        running.add_metric([endpoint_id], load.running)
        waiting.add_metric([endpoint_id], load.waiting)
        cache.add_metric([endpoint_id], load.kv_use)
        speed.add_metric([endpoint_id, "prompt"], load.prompt_tokens_per_s)
        speed.add_metric([endpoint_id, "completion"], load.generated_tokens_per_s)
        for statistic, value in (("mean", load.first_token_mean_s), ("p95", load.first_token_p95_s)):
            if value is not None:
                first.add_metric([endpoint_id, statistic], value)
    return [running, waiting, cache, speed, first]


def render(collector: StateCollector) -> bytes:
    """Render all metrics in the text format, version 0.0.4."""
    momentary = CollectorRegistry()
    momentary.register(collector)
    return generate_latest(REGISTRY) + generate_latest(momentary)


class PrometheusMiddleware:
    """Counts requests by the route's template, so that ids in paths make no new series."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything through; note status and time of HTTP requests."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                _note(scope, message["status"], time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, send_and_note)


def _note(scope: Scope, status: int, elapsed_s: float) -> None:
    route = getattr(scope.get("route"), "path", None) or "unmatched"
    # Anything may stand where a method is expected.
    known = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
    method = scope["method"] if scope["method"] in known else "other"
    REQUESTS.labels(method, route, str(status)).inc()
    LATENCY.labels(method, route).observe(elapsed_s)
