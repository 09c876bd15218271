"""Decides who a request comes from, and opens and closes browser sessions."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlmodel import Session

from trellis_api.auth import repository
from trellis_api.auth.errors import LoginFailed, NotLoggedIn
from trellis_api.auth.secrets import LOGIN_CODE_PREFIX, SESSION_PREFIX, hash_secret, new_secret
from trellis_api.core.columns import utc_now

ADMIN = "admin"


@dataclass(frozen=True)
class User:
    """Whoever sent the request."""

    name: str
    method: Literal["token", "session"]
    expires_at: datetime | None = None


@dataclass(frozen=True)
class OpenedSession:
    """A fresh browser session; the token goes into the cookie and nowhere else."""

    token: str
    expires_at: datetime


def authenticate_token(session: Session, *, token: str) -> User:
    """Return the user of a bearer token, or raise ``NotLoggedIn``."""
    row = repository.find_access_token(session, token_hash=hash_secret(token))
    if row is None:
        raise NotLoggedIn("Invalid token.")
    return User(name=row.name, method="token")


def authenticate_session(session: Session, *, token: str) -> User:
    """Return the user of a session cookie, or raise ``NotLoggedIn``."""
    row = repository.find_browser_session(session, token_hash=hash_secret(token))
    if row is None or row.expires_at <= utc_now():
        raise NotLoggedIn("Your session has expired. Log in again.")
    return User(name=ADMIN, method="session", expires_at=row.expires_at)


def login_with_code(session: Session, *, code: str, lifetime_s: int) -> OpenedSession:
    """Spend a one-time code for a browser session."""
    if not repository.use_login_code(session, code_hash=hash_secret(code), now=utc_now()):
        raise LoginFailed("The login link was already used or has expired. Create a new one.")
    return _open_session(session, lifetime_s=lifetime_s)


def login_with_token(session: Session, *, token: str, lifetime_s: int) -> OpenedSession:
    """Exchange the admin token for a browser session."""
    try:
        authenticate_token(session, token=token)
    except NotLoggedIn as error:
        raise LoginFailed("Invalid token.") from error
    return _open_session(session, lifetime_s=lifetime_s)


def logout(session: Session, *, token: str) -> None:
    """End a browser session."""
    repository.delete_browser_session(session, token_hash=hash_secret(token))


def create_login_code(session: Session, *, lifetime_s: int) -> str:
    """Create a code that opens one browser session, once, within its lifetime."""
    now = utc_now()
    code = new_secret(LOGIN_CODE_PREFIX)
    repository.add_login_code(
        session, code_hash=hash_secret(code), expires_at=now + timedelta(seconds=lifetime_s), now=now
    )
    return code


def _open_session(session: Session, *, lifetime_s: int) -> OpenedSession:
    now = utc_now()
    opened = OpenedSession(token=new_secret(SESSION_PREFIX), expires_at=now + timedelta(seconds=lifetime_s))
    repository.add_browser_session(
        session, token_hash=hash_secret(opened.token), expires_at=opened.expires_at, now=now
    )
    return opened
