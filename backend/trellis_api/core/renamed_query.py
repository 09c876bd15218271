"""Accepts a query parameter under its old name for one release, marked as deprecated."""

import logging
from collections.abc import Callable
from typing import Annotated

from fastapi import Query, Response

logger = logging.getLogger(__name__)

#: RFC 9745: the time since when a name is deprecated (2026-11-26).
DEPRECATED_SINCE = "@1795651200"


def renamed_flag(name: str, *, old: str, description: str) -> Callable[..., bool]:
    """Return a dependency that reads ``name``, or ``old`` with a log entry and a ``Deprecation`` header."""

    def read(
        response: Response,
        value: Annotated[bool, Query(alias=name, description=description)] = False,
        old_value: Annotated[
            bool | None, Query(alias=old, description=f"Renamed to `{name}`.", deprecated=True)
        ] = None,
    ) -> bool:
        if old_value is not None:
            logger.warning("query parameter '%s' was renamed to '%s'", old, name)
            response.headers["Deprecation"] = DEPRECATED_SINCE
        return value or bool(old_value)

    return read
