"""Parts that several job routers ask for."""

from typing import Annotated, Any

from fastapi import Path

from trellis_api.core.errors import ERROR_RESPONSES

JobId = Annotated[str, Path(description="Id of the job.", pattern=r"^job_[a-z2-7]{12}$")]
JOB_RESPONSES: dict[int | str, dict[str, Any]] = {401: ERROR_RESPONSES[401], 404: ERROR_RESPONSES[404]}
