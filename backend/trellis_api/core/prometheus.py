"""Counters of this process that Prometheus reads: each domain counts what it does."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()
REQUESTS = Counter(
    "trellis_http_requests",
    "Requests, by route and status.",
    ["method", "route", "status"],
    registry=REGISTRY,
)
LATENCY = Histogram(
    "trellis_http_request_seconds",
    "Time from a request to the first byte of its response.",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
INGEST_BATCHES = Counter(
    "trellis_ingest_batches", "Batches that jobs sent (accepted, repeated).", ["outcome"], registry=REGISTRY
)
INGEST_POINTS = Counter("trellis_ingest_points", "Metric points that were stored.", registry=REGISTRY)
SSE_CLIENTS = Gauge("trellis_sse_clients", "Open event streams.", registry=REGISTRY)
