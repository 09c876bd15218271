"""Login, logout, and who am I."""

from fastapi import APIRouter, Request, Response
from sqlmodel import Session

from trellis_api.auth import rate_limit, service
from trellis_api.auth.dependencies import SESSION_COOKIE, CookieDep, UserDep, reject_cross_site
from trellis_api.auth.errors import LoginFailed, TooManyAttempts
from trellis_api.auth.schemas import LoginRequest, UserRead
from trellis_api.auth.service import OpenedSession
from trellis_api.core.columns import utc_now
from trellis_api.core.dependencies import DatabaseDep, SettingsDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody

router = APIRouter(
    prefix="/auth", tags=["auth"], responses={401: ERROR_RESPONSES[401], 403: ERROR_RESPONSES[403]}
)


@router.post(
    "/login",
    summary="Exchange a login link's code or the admin token for a session cookie",
    responses={429: {"model": ErrorBody, "description": "Too many failed logins"}},
)
def login(
    body: LoginRequest, request: Request, response: Response, database: DatabaseDep, settings: SettingsDep
) -> UserRead:
    """Log in and set an HttpOnly, SameSite=Strict cookie."""
    address = request.client.host if request.client else "unknown"
    with database.read() as session:
        wait_s = rate_limit.find_wait_s(session, address=address, now=utc_now())
    if wait_s:
        raise TooManyAttempts(
            "Too many failed logins. Wait a minute and try again.",
            headers={"Retry-After": str(int(wait_s) + 1)},
        )
    lifetime_s = settings.session_lifetime_s
    try:
        with database.write() as session:
            opened = _open_session(session, body, lifetime_s=lifetime_s)
    except LoginFailed:
        # In a transaction of its own: the login's has just been rolled back.
        with database.write() as session:
            rate_limit.add_failure(session, address=address, now=utc_now())
        raise
    response.set_cookie(
        SESSION_COOKIE,
        opened.token,
        max_age=lifetime_s,
        httponly=True,
        samesite="strict",
        secure=settings.secure_cookies or request.url.scheme == "https",
    )
    return UserRead(name=service.ADMIN, method="session", expires_at=opened.expires_at)


def _open_session(session: Session, body: LoginRequest, *, lifetime_s: int) -> OpenedSession:
    if body.code is not None:
        return service.login_with_code(session, code=body.code.get_secret_value(), lifetime_s=lifetime_s)
    if body.token is not None:
        token = body.token.get_secret_value().strip()
        return service.login_with_token(session, token=token, lifetime_s=lifetime_s)
    raise LoginFailed("Provide a code or a token.")  # the schema lets this through never


@router.post("/logout", status_code=204, summary="End the browser session")
def logout(request: Request, response: Response, session: WriteSession, cookie: CookieDep) -> None:
    """Delete the session and its cookie; do nothing if there is no session."""
    if cookie is not None:
        reject_cross_site(request)
        service.logout(session, token=cookie)
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")


@router.get("/me", summary="Who is logged in")
def read_me(user: UserDep) -> UserRead:
    """Return the logged-in user; 401 if nobody is logged in."""
    return UserRead(name=user.name, method=user.method, expires_at=user.expires_at)
