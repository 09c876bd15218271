"""Parts that several job routers ask for."""

from typing import Annotated, Any

from fastapi import Path

from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern

JobId = Annotated[str, Path(description="Id of the job.", pattern=id_pattern("job"))]
JOB_RESPONSES: dict[int | str, dict[str, Any]] = {401: ERROR_RESPONSES[401], 404: ERROR_RESPONSES[404]}
Step = Annotated[int, Path(ge=0, le=2**53, description="Step of the checkpoint.")]
CHECKPOINT_CONFLICT: dict[int | str, dict[str, Any]] = {409: ERROR_RESPONSES[409], 422: ERROR_RESPONSES[422]}
