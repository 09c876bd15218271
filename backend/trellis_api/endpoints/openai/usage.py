"""Figures of what endpoints did, for Prometheus and for their page; since this API process was started."""

from collections import defaultdict
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from prometheus_client import Counter

from trellis_api.core.columns import utc_now
from trellis_api.core.errors import DomainError
from trellis_api.core.prometheus import REGISTRY
from trellis_api.endpoints.errors import (
    EndpointFailed,
    EndpointNotReady,
    EndpointPreempted,
    EndpointStopped,
    EngineError,
    EngineLost,
    EngineSilent,
)
from trellis_api.endpoints.schemas import EndpointRequests, RequestOutcome

REQUESTS = Counter(
    "trellis_endpoint_requests",
    "Requests, by route, endpoint ID (empty where none was found) and how they ended (answered, refused, "
    "not_ready, stopped, timed_out, lost, broken_off).",
    ["route", "endpoint", "outcome"],
    registry=REGISTRY,
)
TOKENS = Counter(
    "trellis_endpoint_tokens", "Tokens that engines read and wrote.", ["direction"], registry=REGISTRY
)
_OUTCOMES: dict[type[DomainError], RequestOutcome] = {
    EndpointNotReady: "not_ready",
    EndpointFailed: "not_ready",
    EndpointStopped: "stopped",
    EndpointPreempted: "stopped",
    EngineSilent: "timed_out",
    EngineLost: "lost",
    EngineError: "lost",
}
_SINCE = utc_now()
_by_endpoint: defaultdict[str, EndpointRequests] = defaultdict(lambda: EndpointRequests(since=_SINCE))


class RequestCount:
    """Counts one request when it ends: by the error that is raised, or as ``outcome`` says."""

    def __init__(self, route: str) -> None:
        self._route = route
        #: Empty until it is found.
        self.endpoint_id = ""
        #: None: whoever sends the rest of the answer counts.
        self.outcome: RequestOutcome | None = "answered"

    def __enter__(self) -> "RequestCount":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.outcome = outcome_of(error)
            details = error.details if isinstance(error, DomainError) else None
            if not self.endpoint_id and isinstance(details, dict):
                self.endpoint_id = str(details.get("endpoint", ""))
        if self.outcome is not None:
            count_request(self._route, self.endpoint_id, self.outcome)


class CountedRoute(APIRoute):
    """Counts requests whose body is refused before the route is called."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which counts what it refuses."""
        handle = super().get_route_handler()

        async def count_refused(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError:
                count_request(request.scope["route"].path, "", "refused")
                raise

        return count_refused


def outcome_of(error: BaseException) -> RequestOutcome:
    """Return the outcome of a request that ended in an error; a bug in the API counts as lost."""
    if isinstance(error, DomainError):
        return _OUTCOMES.get(type(error), "refused")
    return "lost" if isinstance(error, Exception) else "broken_off"


def count_request(route: str, endpoint_id: str, outcome: RequestOutcome) -> None:
    """Count one request."""
    REQUESTS.labels(route, endpoint_id, outcome).inc()
    if endpoint_id:
        counts = _by_endpoint[endpoint_id]
        setattr(counts, outcome, getattr(counts, outcome) + 1)


def read_requests(endpoint_id: str) -> EndpointRequests:
    """Return how the requests of an endpoint ended."""
    return _by_endpoint.get(endpoint_id) or EndpointRequests(since=_SINCE)


def count_usage(usage: Any) -> None:
    """Count the tokens of one answer, as the engine tells them."""
    if isinstance(usage, dict):
        for direction, other in (("prompt", "input"), ("completion", "output")):
            count = usage.get(f"{direction}_tokens") or usage.get(f"{other}_tokens") or 0
            TOKENS.labels(direction).inc(int(count))
