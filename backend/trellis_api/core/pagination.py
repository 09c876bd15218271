"""Paging by cursor: the position of the last row, so that rows added meanwhile shift nothing."""

import base64
import binascii
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, Field

from trellis_api.core.errors import InvalidRequest

Item = TypeVar("Item")


class _Listed(Protocol):
    """A row of a list that is sorted by time."""

    id: str
    created_at: datetime


Row = TypeVar("Row", bound=_Listed)
MAX_PAGE_SIZE = 200
DEFAULT_PAGE_SIZE = 50


class Page(BaseModel, Generic[Item]):
    """One page and the way to the next."""

    items: list[Item]
    next_cursor: str | None = Field(
        default=None, description="Pass as `cursor` for the next page; null at the end."
    )


class InvalidCursor(InvalidRequest):
    """The cursor was not made by this API."""

    code = "invalid_cursor"


def encode_cursor(*position: str | float | None) -> str:
    """Pack the sort values of a row into one opaque string."""
    # A character of another script takes up to 4 bytes; as an escape, it would take up to 12.
    packed = json.dumps(position, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_cursor(cursor: str, *, parts: int) -> list[Any]:
    """Unpack what ``encode_cursor`` packed; 422 for anything else."""
    try:
        position = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError) as error:
        raise InvalidCursor("Invalid cursor.") from error
    if not isinstance(position, list) or len(position) != parts:
        raise InvalidCursor("Invalid cursor.")
    return position


def decode_time_position(cursor: str) -> tuple[datetime, str]:
    """Unpack (instant, id), the position in a list that is sorted by time; 422 for anything else."""
    moment, identifier = decode_cursor(cursor, parts=2)
    try:
        instant = datetime.fromisoformat(moment)
    except (TypeError, ValueError) as error:
        raise InvalidCursor("Invalid cursor.") from error
    if instant.tzinfo is None or not isinstance(identifier, str) or "\x00" in identifier:
        raise InvalidCursor("Invalid cursor.")
    return instant, identifier


def cut_page(rows: Sequence[Row], *, limit: int) -> tuple[Sequence[Row], str | None]:
    """Return the page's rows and the next cursor; ``rows`` has one more than ``limit`` if more follow."""
    shown = rows[:limit]
    if len(rows) <= limit:
        return shown, None
    return shown, encode_cursor(shown[-1].created_at.isoformat(), shown[-1].id)
