"""The guard of the ingest endpoints."""

from typing import Annotated

from fastapi import Depends, Path

from trellis_api.auth.dependencies import BearerToken
from trellis_api.core.dependencies import DatabaseDep
from trellis_api.core.ids import id_pattern
from trellis_api.ingest import service

#: A run knows its ID; names are for people.
RunningJobId = Annotated[str, Path(description="ID of the job.", pattern=id_pattern("job"))]


def require_job_token(job_id: RunningJobId, token: BearerToken, database: DatabaseDep) -> str:
    """Return the token of a run that may report; otherwise the body is not even read."""
    with database.read() as session:
        service.authorise(session, job_id=job_id, token=token)
    return token


JobToken = Annotated[str, Depends(require_job_token)]
