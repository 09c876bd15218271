"""Whether the API lives, and whether it can do its work."""

import logging
import os

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from trellis_api.core.dependencies import DatabaseDep, SettingsDep
from trellis_api.core.migrations import is_current

log = logging.getLogger(__name__)
router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The process answers."""

    status: str


class Readiness(BaseModel):
    """Each part with what is wrong with it, or null."""

    is_ready: bool
    problems: dict[str, str | None]


@router.get("/healthz", summary="Is the process alive?")
def read_health() -> Health:
    """Return whether the process is alive, which depends on nothing else."""
    return Health(status="ok")


@router.get(
    "/readyz",
    summary="Is it ready for work?",
    response_model=Readiness,
    responses={503: {"model": Readiness}},
)
def read_readiness(database: DatabaseDep, settings: SettingsDep) -> JSONResponse:
    """Check readiness; 503 if the database is unreachable or not migrated, or the data root not writable."""
    problems: dict[str, str | None] = {"database": None, "data_root": None}
    try:
        with database.read() as session:
            session.connection().execute(text("SELECT 1"))
            if not is_current(session.connection()):
                problems["database"] = "not migrated: run `python -m trellis_api.migrate`"
    except SQLAlchemyError as error:
        log.warning("the database is not ready: %s", error)
        problems["database"] = "does not answer"
    if not os.access(settings.data_root, os.W_OK | os.X_OK):
        problems["data_root"] = "cannot be written"
    readiness = Readiness(is_ready=not any(problems.values()), problems=problems)
    return JSONResponse(readiness.model_dump(), status_code=200 if readiness.is_ready else 503)
