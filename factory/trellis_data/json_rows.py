"""Rows as JSON has them, for browsers and reports."""

import base64
import math
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa


def rows_as_json(table: pa.Table) -> list[dict[str, Any]]:
    """Convert the rows of a table to JSON objects."""
    return [to_json(row) for row in table.to_pylist()]


def to_json(value: Any) -> Any:
    """Convert a value to JSON: times as ISO text, bytes as base64, NaN as text."""
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value) if isinstance(value, Decimal) else value
