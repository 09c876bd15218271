"""The time stamp of events."""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)
