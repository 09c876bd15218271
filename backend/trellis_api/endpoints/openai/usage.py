"""Figures of what endpoints did, for Prometheus."""

from typing import Any

from prometheus_client import Counter

from trellis_api.monitoring.prometheus import REGISTRY

REQUESTS = Counter(
    "trellis_endpoint_requests",
    "Requests that reached an engine, by route and how they ended (answered, refused, lost, broken_off).",
    ["route", "outcome"],
    registry=REGISTRY,
)
TOKENS = Counter(
    "trellis_endpoint_tokens", "Tokens that engines read and wrote.", ["direction"], registry=REGISTRY
)


def count_request(route: str, outcome: str) -> None:
    """Count one request."""
    REQUESTS.labels(route, outcome).inc()


def count_usage(usage: Any) -> None:
    """Count the tokens of one answer, as the engine tells them."""
    if isinstance(usage, dict):
        for direction, other in (("prompt", "input"), ("completion", "output")):
            count = usage.get(f"{direction}_tokens") or usage.get(f"{other}_tokens") or 0
            TOKENS.labels(direction).inc(int(count))
