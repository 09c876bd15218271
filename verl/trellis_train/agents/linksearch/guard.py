"""Runs SQL that a model wrote: it can read profiles and nothing else, and only for so long.

What a statement may do is decided by SQLite itself while it is compiled (its authorizer), on a connection
that cannot write: https://www.sqlite.org/c3ref/set_authorizer.html. No text is searched for bad words.
"""

import json
import math
import re
import sqlite3
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

MAX_SQL_CHARACTERS = 4000
MAX_VALUE_BYTES = 1_000_000
MAX_DEPTH = 50
MAX_COMPOUND = 8
MAX_PARAMETERS = 100
MAX_ROWS = 50
MAX_CELL_CHARACTERS = 300
MAX_REPLY_CHARACTERS = 6000
TIME_LIMIT_S = 0.5
#: Steps of SQLite's machine between two looks at the clock.
_STEPS = 1000
TABLES = frozenset({"profiles", "experiences", "educations", "profiles_fts"})
_INDEX_TABLES = frozenset(f"profiles_fts_{part}" for part in ("data", "idx", "content", "docsize", "config"))
FUNCTIONS = frozenset({
    "abs", "avg", "bm25", "coalesce", "count", "date", "group_concat", "highlight", "ifnull", "iif", "instr",
    "julianday", "length", "like", "lower", "ltrim", "match", "max", "min", "nullif", "replace", "round",
    "rtrim", "snippet", "strftime", "substr", "substring", "sum", "total", "trim", "upper",
    "row_number", "rank", "dense_rank",
})  # fmt: skip
_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$)", re.DOTALL)
_SELECT = re.compile(r"(?:SELECT|WITH)\b", re.IGNORECASE)
_Value = str | int | float | None


class Refusal(StrEnum):
    """Why a statement was not run to its end."""

    NOT_SELECT = "NOT_SELECT"
    DENIED = "DENIED"
    TIMEOUT = "TIMEOUT"
    TOO_BIG = "TOO_BIG"
    SYNTAX = "SYNTAX"
    BAD_PARAMS = "BAD_PARAMS"


@dataclass(frozen=True)
class Reply:
    """Rows by column name, or why there are none."""

    rows: list[dict[str, _Value]] = field(default_factory=list)
    #: Rows or texts were left out.
    truncated: bool = False
    error: Refusal | None = None
    message: str = ""

    def as_tool_result(self) -> dict[str, Any]:
        """Return the reply as the tool result that the model reads."""
        if self.error is not None:
            return {"success": False, "error": {"code": self.error.value, "message": self.message}}
        return {
            "success": True, "rows": self.rows, "row_count": len(self.rows), "truncated": self.truncated,
        }  # fmt: skip


class SqlGuard:
    """A database of profiles that anybody's SQL may be run on; each thread has a connection of its own."""

    def __init__(self, path: Path, *, time_limit_s: float = TIME_LIMIT_S) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"profile database not found: {path}")
        self._path = path
        self._time_limit_s = time_limit_s
        self._local = threading.local()

    def run(self, sql: object, params: object = None, max_rows: int = MAX_ROWS) -> Reply:
        """Run a statement and return its rows; never raises for model input and never changes the data."""
        refused = _look_at(sql, params)
        if refused is not None:
            return refused
        connection = self._connection()
        self._local.deadline = time.monotonic() + self._time_limit_s
        limit = min(max(1, max_rows), MAX_ROWS)
        try:
            cursor = connection.execute(str(sql), tuple(params or ()))  # type: ignore[arg-type]
            names = _distinct([column[0] for column in cursor.description or ()])
            fetched = cursor.fetchmany(limit + 1)
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, UnicodeError) as error:
            return _explain(error)
        return _bound(names, fetched, limit)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
        return connection

    def _connect(self) -> sqlite3.Connection:
        address = f"{self._path.resolve().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        connection.executescript(
            "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = 2;"
        )
        # FTS5 prepares statements of its own at its first use, which no authorizer would let it.
        connection.execute("SELECT rowid FROM profiles_fts WHERE profiles_fts MATCH 'a' LIMIT 1").fetchall()
        for limit, value in (
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 4 * MAX_SQL_CHARACTERS),
            (sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, MAX_DEPTH),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, MAX_COMPOUND),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, MAX_PARAMETERS),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_CELL_CHARACTERS),
        ):
            connection.setlimit(limit, value)
        connection.set_authorizer(_authorise)
        connection.set_progress_handler(self._is_late, _STEPS)
        return connection

    def _is_late(self) -> int:
        return int(time.monotonic() > self._local.deadline)


def _authorise(
    action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None
) -> int:
    """Allow or deny an action that SQLite asks about for a statement. Action codes: sqlite3.h."""
    if action == sqlite3.SQLITE_SELECT:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ:
        is_ours = first in TABLES or first in _INDEX_TABLES
        return sqlite3.SQLITE_OK if is_ours else sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if (second or "").lower() in FUNCTIONS else sqlite3.SQLITE_DENY
    # FTS5 asks whether the database has changed since it looked last.
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and second is None:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _look_at(sql: object, params: object) -> Reply | None:
    """Check a statement without SQLite; return the refusal, or None."""
    if not isinstance(sql, str) or not sql.strip():
        return _refuse(Refusal.SYNTAX, "sql has to be a text with one SELECT statement")
    if len(sql) > MAX_SQL_CHARACTERS:
        return _refuse(Refusal.TOO_BIG, f"a statement may have {MAX_SQL_CHARACTERS} characters")
    if not _SELECT.match(_without_comments(sql)):
        return _refuse(Refusal.NOT_SELECT, "only SELECT statements are run")
    if params is None:
        return None
    if not isinstance(params, list | tuple) or len(params) > MAX_PARAMETERS:
        return _refuse(Refusal.BAD_PARAMS, f"params has to be a list of at most {MAX_PARAMETERS} values")
    if not all(value is None or isinstance(value, str | int | float) for value in params):
        return _refuse(Refusal.BAD_PARAMS, "params may hold texts, numbers, true, false and null")
    return None


def _without_comments(sql: str) -> str:
    """Return the statement without its leading comments."""
    start = 0
    while (match := _COMMENT.match(sql, start)) is not None and match.end() > start:
        start = match.end()
    return sql[start:]


def _explain(error: Exception) -> Reply:
    """Convert an SQL error to a reply with an error code that the model can use."""
    text, code = str(error)[:MAX_CELL_CHARACTERS], getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return _refuse(Refusal.TIMEOUT, "the statement took too long")
    if code == sqlite3.SQLITE_AUTH:
        return _refuse(Refusal.DENIED, text)
    if isinstance(error, OverflowError) or "binding" in text or "variable" in text:
        return _refuse(Refusal.BAD_PARAMS, text)
    if code == sqlite3.SQLITE_TOOBIG or "too large" in text or "too many terms" in text:
        return _refuse(Refusal.TOO_BIG, text)
    # A virtual table that may not be made says only that.
    if any(sign in text for sign in ("not authorized", "prohibited", "vtable constructor failed")):
        return _refuse(Refusal.DENIED, text)
    return _refuse(Refusal.SYNTAX, text)


def _refuse(code: Refusal, message: str) -> Reply:
    return Reply(error=code, message=message)


def _bound(names: list[str], fetched: list[tuple[Any, ...]], limit: int) -> Reply:
    """Return the rows, limited by cell size and total reply size."""
    rows, truncated, room = list[dict[str, _Value]](), len(fetched) > limit, MAX_REPLY_CHARACTERS
    for values in fetched[:limit]:
        shown = [_cell(value) for value in values]
        truncated = truncated or any(cut for _, cut in shown)
        row = dict(zip(names, (value for value, _ in shown), strict=True))
        room -= len(json.dumps(row, ensure_ascii=False)) + 2
        if room < 0:
            return Reply(rows, truncated=True)
        rows.append(row)
    return Reply(rows, truncated)


def _distinct(names: list[str]) -> list[str]:
    """Rename columns of the same name to ``name`` and ``name:2``."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[place] = f"{name}:{seen[name]}"
    return names


def _cell(value: Any) -> tuple[_Value, bool]:
    """Return a value as it is shown, and whether it was cut."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and len(value) > MAX_CELL_CHARACTERS:
        return value[:MAX_CELL_CHARACTERS] + "…", True
    if isinstance(value, float) and not math.isfinite(value):
        return str(value), False  # JSON has no infinity
    return value, False
