"""Slows down guessing: failed logins are counted per address, in a sliding window, for all API processes."""

from datetime import datetime, timedelta

from sqlmodel import Session

from trellis_api.auth import repository

MAX_FAILURES = 10
WINDOW = timedelta(seconds=60)
_MAX_ADDRESS = 64


def find_wait_s(session: Session, *, address: str, now: datetime) -> float:
    """Return the seconds until that address may try again; 0 if it may now."""
    failures = repository.list_login_failures(
        session, address=address[:_MAX_ADDRESS], since=now - WINDOW, limit=MAX_FAILURES
    )
    if len(failures) < MAX_FAILURES:
        return 0.0
    return max(0.0, (failures[-1] + WINDOW - now).total_seconds())


def add_failure(session: Session, *, address: str, now: datetime) -> None:
    """Remember a failed attempt."""
    repository.add_login_failure(session, address=address[:_MAX_ADDRESS], now=now, forget_before=now - WINDOW)
