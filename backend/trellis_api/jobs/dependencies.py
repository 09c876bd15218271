"""Parts that several job routers ask for."""

from typing import Annotated, Any

from fastapi import Depends, Path, Request
from starlette.concurrency import run_in_threadpool

from trellis_api.core.dependencies import DatabaseDep, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.jobs.tried_ahead import try_templates_of

JobId = Annotated[str, Path(description="ID or name of the job.")]
JOB_RESPONSES: dict[int | str, dict[str, Any]] = {401: ERROR_RESPONSES[401], 404: ERROR_RESPONSES[404]}
Step = Annotated[int, Path(ge=0, le=2**53, description="Step of the checkpoint.")]
CHECKPOINT_CONFLICT: dict[int | str, dict[str, Any]] = {409: ERROR_RESPONSES[409], 422: ERROR_RESPONSES[422]}


async def _try_templates(request: Request, database: DatabaseDep, settings: SettingsDep) -> None:
    try:
        body = await request.json()
    except (ValueError, RecursionError):  # no body, or none that can be read: its own check says so
        body = None
    await run_in_threadpool(try_templates_of, database.read, settings, [dict(request.path_params), body])


#: For the decorator of a route, so that it comes before the transaction.
TRY_TEMPLATES = Depends(_try_templates)
