"""Guards of endpoints: a user, or the token of one job."""

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from trellis_api.auth import service
from trellis_api.auth.errors import CrossSiteRequest, NotLoggedIn
from trellis_api.auth.service import User
from trellis_api.core.dependencies import DatabaseDep

SESSION_COOKIE = "trellis_session"
#: A page of another site cannot add a header without asking first; we never allow it.
CLIENT_HEADER = "X-Trellis-Client"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_bearer = HTTPBearer(auto_error=False, description="The admin token, or a job's token for ingest.")
_cookie = APIKeyCookie(name=SESSION_COOKIE, auto_error=False, description="Session of the dashboard.")

BearerDep = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
CookieDep = Annotated[str | None, Security(_cookie)]


def require_user(request: Request, database: DatabaseDep, bearer: BearerDep, cookie: CookieDep) -> User:
    """Return the logged-in user; 401 otherwise. A cookie alone is not enough to change something."""
    if bearer is not None:
        with database.read() as session:
            return service.authenticate_token(session, token=bearer.credentials)
    if cookie is None:
        raise NotLoggedIn
    reject_cross_site(request)
    with database.read() as session:
        return service.authenticate_session(session, token=cookie)


def reject_cross_site(request: Request) -> None:
    """Refuse a state-changing request that another site may have caused."""
    if request.method in SAFE_METHODS:
        return
    is_foreign = request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
    if is_foreign or not request.headers.get(CLIENT_HEADER):
        raise CrossSiteRequest(f"Requests with the session cookie must include the {CLIENT_HEADER} header.")


async def require_bearer(bearer: BearerDep) -> str:
    """Return the bearer token as sent, or raise 401 without one; the caller checks whether it is valid."""
    if bearer is None:
        raise NotLoggedIn
    return bearer.credentials


UserDep = Annotated[User, Depends(require_user)]
BearerToken = Annotated[str, Depends(require_bearer)]
