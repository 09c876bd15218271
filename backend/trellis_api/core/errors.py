"""Errors are facts of a domain: each carries its status and code, and one handler renders them all."""

import errno
import logging
import sqlite3
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from trellis_api.core.openai_errors import describe_openai, is_openai, openai_status

log = logging.getLogger(__name__)


class ErrorBody(BaseModel):
    """The format of every error."""

    error: str = Field(description="Stable code, e.g. job_not_found.")
    message: str = Field(description="One English sentence.")
    details: Any = Field(default=None, description="Further details, if any.")


class DomainError(Exception):
    """Base of the errors that a client may see."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "bad_request"

    def __init__(self, message: str, details: Any = None, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.headers = headers


class NotFound(DomainError):
    """The thing that was named does not exist."""

    status = 404
    code = "not_found"


class Conflict(DomainError):
    """The thing is in a state that does not allow this."""

    status = 409
    code = "conflict"


class InvalidRequest(DomainError):
    """The request is malformed."""

    status = 422
    code = "invalid_request"


class BodyTooLarge(DomainError):
    """The request's body has no end in reach."""

    status = 413
    code = "too_large"


class BodyTooSlow(DomainError):
    """The request's body does not come."""

    status = 408
    code = "body_too_slow"


class DiskFull(DomainError):
    """The disk of the data root has no room."""

    status = 507
    code = "disk_full"


class DatabaseBusy(DomainError):
    """The database did not answer in time."""

    status = 503
    code = "database_unavailable"


def means_no_room(error: OSError) -> bool:
    """Tell whether a disk error says that the disk, or the share of it that we may use, is full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


#: Statuses of requests that no route takes: which of both depends on whether the dashboard is served, too.
_NO_ROUTE = (404, 405)
#: For ``responses=`` of routers, so that the OpenAPI schema describes errors.
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": description}
    for status, description in {
        401: "Not logged in",
        403: "A session cookie came without the header that proves where the request is from",
        404: "Not found",
        409: "Not possible in this state",
        422: "Malformed request",
    }.items()
}


def install_error_handlers(app: FastAPI) -> None:
    """Render domain errors, validation errors and unknown routes in one shape."""

    @app.exception_handler(DomainError)
    async def render_domain_error(request: Request, error: DomainError) -> JSONResponse:
        return render_error(error, path=request.url.path)

    @app.exception_handler(RequestValidationError)
    async def render_validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        issues = [
            {
                "code": problem["type"],
                "field": ".".join(str(part) for part in problem["loc"] if part != "body"),
                "message": _explain(problem, request.url.path),
            }
            for problem in error.errors()
        ]
        first = issues[0] if issues else {"field": "", "message": "malformed"}
        message = f"{first['field']}: {first['message']}"
        return _render(422, "invalid_request", message, issues, path=request.url.path)

    @app.exception_handler(HTTPException)
    async def render_http_error(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.__cause__, DomainError):  # FastAPI's 400 for what receiving a body raises
            return render_error(error.__cause__, path=request.url.path)
        if is_openai(request.url.path) and error.status_code in _NO_ROUTE:
            return render_error(_unsupported(request), path=request.url.path)
        codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
        return _render(
            error.status_code,
            codes.get(error.status_code, "http_error"),
            str(error.detail),
            None,
            error.headers,
            path=request.url.path,
        )

    @app.exception_handler(OperationalError)
    async def render_database_error(request: Request, error: OperationalError) -> JSONResponse:
        log.error("database failed during %s %s: %s", request.method, request.url.path, error.orig)
        path = request.url.path
        if _lacks_room(error.orig):
            return _render(DiskFull.status, DiskFull.code, "The database disk is full.", None, path=path)
        message = "The database timed out. Try again."
        return _render(503, DatabaseBusy.code, message, None, path=path)

    @app.exception_handler(Exception)
    async def render_unexpected_error(request: Request, error: Exception) -> JSONResponse:
        log.error("unexpected error in %s %s", request.method, request.url.path, exc_info=error)
        message = "Internal error. See the API log for details."
        return _render(500, "internal_error", message, None, path=request.url.path)


def _explain(problem: dict[str, Any], path: str) -> str:
    """Return what is wrong with a field; clients of OpenAI's send fields that are right elsewhere."""
    if is_openai(path) and problem["type"] == "extra_forbidden":
        return "This field is not supported."
    return str(problem["msg"])


def _unsupported(request: Request) -> NotFound:
    """Name what was called: clients of OpenAI's call much that is not offered, and show little else."""
    called = f"{request.method} {request.url.path[:200]}"
    return NotFound(f"{called} is not supported. GET /api/v1/openapi.json lists what is.")


def _lacks_room(error: Any) -> bool:
    """Check for the error codes of SQLite and PostgreSQL for a full disk."""
    said = (getattr(error, "sqlite_errorcode", None), getattr(error, "sqlstate", None))
    return said[0] == sqlite3.SQLITE_FULL or said[1] == "53100"


def render_error(error: DomainError, *, path: str) -> JSONResponse:
    """Render an error as the response for a request to this path."""
    return _render(error.status, error.code, error.message, error.details, error.headers, path=path)


def _render(
    status: int, code: str, message: str, details: Any, headers: Any = None, *, path: str
) -> JSONResponse:
    if is_openai(path):
        openai_body = describe_openai(status, code, message, details)
        return JSONResponse(openai_body, status_code=openai_status(status), headers=headers)
    body = ErrorBody(error=code, message=message, details=details)
    return JSONResponse(body.model_dump(mode="json"), status_code=status, headers=headers)
