"""What can go wrong with endpoints."""

from trellis_api.core.errors import Conflict, DomainError, InvalidRequest, NotFound


class EndpointNotFound(NotFound):
    """No such endpoint."""

    code = "endpoint_not_found"

    def __init__(self, endpoint_id: str) -> None:
        super().__init__(f"Endpoint {endpoint_id} not found.")


class EndpointStopping(Conflict):
    """It can be started again when it has stopped."""

    code = "endpoint_stopping"


class EndpointWindowTooLong(Conflict):
    """The model reads fewer tokens than were asked for."""

    code = "endpoint_window_too_long"


class EndpointWindowFixed(Conflict):
    """It starts or is ready with another context length than was asked for."""

    code = "endpoint_window_fixed"


class ModelUnknown(NotFound):
    """A request names a model that the platform does not have."""

    code = "model_not_found"


class WrongModelKind(InvalidRequest):
    """An encoder generates no text, and a model that does gives no vectors."""

    status = 400
    code = "wrong_model_kind"


class ToolsUnsupported(InvalidRequest):
    """The model would not see the tools of the request, or its calls could not be read."""

    status = 400
    code = "tools_unsupported"


class EndpointNotReady(DomainError):
    """The model is being loaded, or waits for room; ask again."""

    status = 503
    code = "endpoint_starting"


class EndpointFailed(DomainError):
    """The model could not be loaded, or its engine died."""

    status = 503
    code = "endpoint_failed"


class EndpointStopped(DomainError):
    """Somebody stopped the endpoint while a request waited for its model or for the rest of its response."""

    status = 503
    code = "endpoint_stopped"


class EndpointPreempted(DomainError):
    """A training or another endpoint needed its place; the next request starts it when there is room."""

    status = 503
    code = "endpoint_preempted"


class EngineLost(DomainError):
    """The engine went away while it worked on the request."""

    status = 503
    code = "engine_lost"


class EngineSilent(DomainError):
    """The engine said nothing for too long."""

    status = 504
    code = "engine_silent"


class EngineRefused(DomainError):
    """The engine did not take the request; the message is its own."""

    status = 400
    code = "engine_refused"


class EngineError(DomainError):
    """The engine failed at the request; the message is its own."""

    status = 502
    code = "engine_error"


class TooManyRequests(DomainError):
    """The API works on as many requests as it may."""

    status = 429
    code = "too_many_requests"
