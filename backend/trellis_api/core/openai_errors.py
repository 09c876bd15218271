"""Errors under /v1, in the form that clients of OpenAI's read."""

from typing import Any

from pydantic import BaseModel
from trellis_contracts.endpoints import OPENAI_PREFIX

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}


class OpenAiError(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAiErrorBody(BaseModel):
    """How every error under /v1 looks to a client."""

    error: OpenAiError


OPENAI_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": OpenAiErrorBody, "description": description}
    for status, description in {
        400: "The request has something that is not supported, or is malformed",
        401: "The token is missing or not valid",
        404: "No such model",
        409: "The model cannot be served",
        429: "Too many requests at once",
        503: "The model is being loaded or could not be, or its engine ended; see Retry-After",
    }.items()
}


def is_openai(path: str) -> bool:
    """Tell whether a path belongs to the OpenAI-compatible API."""
    return path.startswith(f"{OPENAI_PREFIX}/")


def openai_status(status: int) -> int:
    """Map 422 to 400, which OpenAI's API returns for malformed input."""
    return 400 if status == 422 else status


def describe_openai(status: int, code: str, message: str, details: Any = None) -> dict[str, Any]:
    """Return the body of an error in OpenAI's format."""
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    error = OpenAiError(message=message, type=kind, param=_find_param(details), code=code)
    return OpenAiErrorBody(error=error).model_dump()


def _find_param(details: Any) -> str | None:
    """Return the part of the request that is to blame, if the details name one."""
    if isinstance(details, list) and details and isinstance(details[0], dict):
        return details[0].get("field") or None
    return details.get("param") if isinstance(details, dict) else None
