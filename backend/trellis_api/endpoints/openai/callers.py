"""Who may ask models: users, and runs for the models that their job hands to its workflow."""

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from trellis_recipes.workflows.source import AUXILIARY

from trellis_api.auth.dependencies import BearerDep, CookieDep, require_user
from trellis_api.auth.errors import NotLoggedIn
from trellis_api.auth.secrets import hash_secret
from trellis_api.auth.service import authenticate_token
from trellis_api.core.database import Database
from trellis_api.core.dependencies import DatabaseDep
from trellis_api.core.shared_lookups import SharedLookups
from trellis_api.endpoints.auxiliary import parse_auxiliary_models
from trellis_api.endpoints.errors import ModelUnknown
from trellis_api.jobs.repository import find_attempt_by_token, find_job


async def require_caller(
    request: Request, database: DatabaseDep, bearer: BearerDep, cookie: CookieDep
) -> None:
    """Require a logged-in user, or the token of a run that is under way; 401 otherwise."""
    request.state.models = None
    if bearer is None:
        await run_in_threadpool(require_user, request, database, bearer, cookie)
        return
    callers: SharedLookups = request.app.state.callers
    request.state.models = await callers.get(
        _find_models, database, bearer.credentials, request.method == "POST"
    )


def _find_models(database: Database, token: str, asks_a_model: bool) -> frozenset[str] | None:
    """Return the models that a token may query: None for all. Raises ``NotLoggedIn``."""
    with database.read() as session:
        try:
            authenticate_token(session, token=token)
        except NotLoggedIn:
            attempt = find_attempt_by_token(session, token_hash=hash_secret(token)) if asks_a_model else None
            job = None if attempt is None else find_job(session, job_id=attempt.job_id)
            if attempt is None or job is None or attempt.finished_at or attempt.number < job.attempt:
                raise
            return frozenset(parse_auxiliary_models(job.params.get(AUXILIARY)).values())
    return None


def require_model(request: Request, model: str) -> None:
    """Raise ``ModelUnknown`` if a run requests a model that its job does not name."""
    allowed: frozenset[str] | None = request.state.models
    if allowed is not None and model not in allowed:
        raise ModelUnknown(
            f"The job does not name the model '{model[:80]}' in {AUXILIARY}.", {"param": "model"}
        )
