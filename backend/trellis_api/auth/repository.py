"""Queries for credentials."""

from datetime import datetime

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from trellis_api.auth.models import AccessToken, BrowserSession, LoginCode, LoginFailure


def find_access_token(session: Session, *, token_hash: str) -> AccessToken | None:
    """Return the access token with this hash, or None."""
    return session.get(AccessToken, token_hash)


def replace_access_token(session: Session, *, name: str, token_hash: str) -> None:
    """Make this the only token of that name."""
    session.exec(
        delete(AccessToken).where(col(AccessToken.name) == name, col(AccessToken.token_hash) != token_hash)
    )
    if session.get(AccessToken, token_hash) is None:
        session.add(AccessToken(token_hash=token_hash, name=name))
    session.flush()


def find_browser_session(session: Session, *, token_hash: str) -> BrowserSession | None:
    """Return the browser session with this hash, expired or not."""
    return session.get(BrowserSession, token_hash)


def add_browser_session(session: Session, *, token_hash: str, expires_at: datetime, now: datetime) -> None:
    """Open a session, and forget the expired ones."""
    session.exec(delete(BrowserSession).where(col(BrowserSession.expires_at) < now))
    session.add(BrowserSession(token_hash=token_hash, created_at=now, expires_at=expires_at))
    session.flush()


def delete_browser_session(session: Session, *, token_hash: str) -> None:
    """Close a session."""
    session.exec(delete(BrowserSession).where(col(BrowserSession.token_hash) == token_hash))


def add_login_code(session: Session, *, code_hash: str, expires_at: datetime, now: datetime) -> None:
    """Keep a one-time code, and forget the expired ones."""
    session.exec(delete(LoginCode).where(col(LoginCode.expires_at) < now))
    session.add(LoginCode(code_hash=code_hash, expires_at=expires_at))
    session.flush()


def use_login_code(session: Session, *, code_hash: str, now: datetime) -> bool:
    """Spend a code, in one statement; False if it is unknown, expired or spent."""
    result = session.exec(
        update(LoginCode)
        .where(
            col(LoginCode.code_hash) == code_hash,
            col(LoginCode.used_at).is_(None),
            col(LoginCode.expires_at) > now,
        )
        .values(used_at=now)
    )
    return result.rowcount == 1


def list_login_failures(session: Session, *, address: str, since: datetime, limit: int) -> list[datetime]:
    """List the times of failed logins from that address since then, newest first."""
    failures = (
        select(LoginFailure.failed_at)
        .where(LoginFailure.address == address, col(LoginFailure.failed_at) > since)
        .order_by(col(LoginFailure.failed_at).desc())
    )
    return list(session.exec(failures.limit(limit)))


def add_login_failure(session: Session, *, address: str, now: datetime, forget_before: datetime) -> None:
    """Note a failed login, and forget the old ones of all addresses."""
    session.exec(delete(LoginFailure).where(col(LoginFailure.failed_at) <= forget_before))
    session.add(LoginFailure(address=address, failed_at=now))
    session.flush()
