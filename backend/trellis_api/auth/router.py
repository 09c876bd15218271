"""Login, logout, and who am I."""

from fastapi import APIRouter, Request, Response

from trellis_api.auth import service
from trellis_api.auth.dependencies import SESSION_COOKIE, CookieDep, UserDep, reject_cross_site
from trellis_api.auth.errors import LoginFailed, TooManyAttempts
from trellis_api.auth.rate_limit import LoginRateLimit
from trellis_api.auth.schemas import LoginRequest, UserRead
from trellis_api.core.dependencies import SettingsDep, WriteSession
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
    body: LoginRequest, request: Request, response: Response, session: WriteSession, settings: SettingsDep
) -> UserRead:
    """Sets an HttpOnly, SameSite=Strict cookie."""
    limit: LoginRateLimit = request.app.state.login_rate_limit
    address = request.client.host if request.client else "unknown"
    if wait_s := limit.wait_s(address):
        raise TooManyAttempts(
            "Too many failed logins; wait a minute.", headers={"Retry-After": str(int(wait_s) + 1)}
        )
    lifetime_s = settings.session_lifetime_s
    try:
        if body.code is not None:
            opened = service.login_with_code(
                session, code=body.code.get_secret_value(), lifetime_s=lifetime_s
            )
        elif body.token is not None:
            opened = service.login_with_token(
                session, token=body.token.get_secret_value().strip(), lifetime_s=lifetime_s
            )
        else:  # the schema lets this through never
            raise LoginFailed("Give a code or a token.")
    except LoginFailed:
        limit.add_failure(address)
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


@router.post("/logout", status_code=204, summary="End the browser session")
def logout(request: Request, response: Response, session: WriteSession, cookie: CookieDep) -> None:
    """Deletes the session and its cookie; does nothing without one."""
    if cookie is not None:
        reject_cross_site(request)
        service.logout(session, token=cookie)
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")


@router.get("/me", summary="Who is logged in")
def read_me(user: UserDep) -> UserRead:
    """401 where nobody is."""
    return UserRead(name=user.name, method=user.method, expires_at=user.expires_at)
