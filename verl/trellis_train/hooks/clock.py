"""The time stamp of events."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time with time zone."""
    return datetime.now(UTC)
