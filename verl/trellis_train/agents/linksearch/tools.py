"""The tools of the agent: what they are called with, and what they answer."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from trellis_train.agents.linksearch.database import normalise_handle
from trellis_train.agents.linksearch.guard import MAX_ROWS, SqlGuard
from trellis_train.agents.linksearch.shape import (
    EDUCATIONS,
    EXPERIENCES,
    GENERATED,
    INDEX,
    TABLES,
    Shape,
    open_unchanged,
    quote,
    read_shape,
)

#: Of jobs and schools of a profile, newest first.
MAX_ENTRIES = 10
_MAX_TEXT = 1000
_UNTOLD = ("rid", "meta")
_ENTRIES = {
    EXPERIENCES: ("title", "company", "location", "start_date", "end_date", "is_current", "employment_type",
                  "description"),
    EDUCATIONS: ("school", "degree", "field_of_study", "start_date", "end_date", "grade", "activities",
                 "description"),
}  # fmt: skip
#: What the model calls the rows of a table.
_WORDS = {EXPERIENCES: "jobs", EDUCATIONS: "schools"}


def tool_schemas(shape: Shape) -> list[dict[str, Any]]:
    """Return the tool schemas shown to the model, in OpenAI's format; names and arguments never change."""
    tables = ", ".join(table for table in TABLES if shape.has(table))
    entries = " and ".join(word for table, word in _WORDS.items() if shape.has(table))
    return [
        _function(
            "search_profile",
            f"Run one read-only SQLite SELECT over {tables} and the"
            f" full-text index {INDEX} (rowid = profiles.rid). Returns at most {MAX_ROWS} rows.",
            {
                "sql": {"type": "string", "description": "One SELECT statement."},
                "params": {
                    "type": "array",
                    "items": {"type": ["string", "number", "boolean", "null"]},
                    "description": "Values of its ? places.",
                },
                "max_rows": {"type": "integer", "minimum": 1, "maximum": MAX_ROWS},
            },
            required="sql",
        ),
        _function(
            "read_profile",
            f"Read one profile with its {entries}." if entries else "Read one profile.",
            {"linkedin_handle": {"type": "string"}},
            required="linkedin_handle",
        ),
        _function(
            "return_results",
            "Answer with the LinkedIn handles of everybody who fits. This ends the episode.",
            {"results": {"type": "array", "items": {"type": "string"}}, "summary": {"type": "string"}},
            required="results",
        ),
    ]


def _function(name: str, description: str, properties: dict[str, Any], *, required: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": [required]}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


SCHEMAS = tool_schemas(GENERATED)


class ProfileTools:
    """The database behind the tools. Calls are blocking and may come from several threads."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._guard = SqlGuard(database)
        self.shape = read_shape(database)
        self.schemas = tool_schemas(self.shape)

    def search_profile(
        self, sql: object, params: object = None, max_rows: object = MAX_ROWS
    ) -> dict[str, Any]:
        """Return rows of a statement that the model wrote (``guard.py``)."""
        rows = max_rows if isinstance(max_rows, int) and not isinstance(max_rows, bool) else MAX_ROWS
        return self._guard.run(sql, params, rows).as_tool_result()

    def read_profile(self, linkedin_handle: object) -> dict[str, Any]:
        """Read a profile by its handle in any notation; never raises."""
        handle = normalise_handle(str(linkedin_handle)).encode("utf-8", "replace").decode()
        try:
            profile = self._read(handle)
        except sqlite3.Error as error:
            return _refuse("DATABASE", f"the profile cannot be read: {error}")
        if profile is None:
            return _refuse("NOT_FOUND", f"there is no profile '{handle[:100]}'")
        return {"success": True, "profile": profile}

    def _read(self, handle: str) -> dict[str, Any] | None:
        with closing(open_unchanged(self._database)) as connection:
            connection.row_factory = sqlite3.Row
            query = "SELECT * FROM profiles WHERE linkedin_handle = ? COLLATE NOCASE"
            row = connection.execute(query, (handle,)).fetchone()
            if row is None:
                return None
            profile = {name: _shown(row[name]) for name in row.keys() if name not in _UNTOLD}  # noqa: SIM118
            for table in _ENTRIES:
                if self.shape.has(table):
                    profile[table] = self._read_entries(connection, table, row["id"])
        return profile

    def _read_entries(
        self, connection: sqlite3.Connection, table: str, profile: object
    ) -> list[dict[str, Any]]:
        """Read jobs or schools, newest first; all columns of a table whose columns differ from ours."""
        there = self.shape.columns[table]
        names = [name for name in _ENTRIES[table] if name in there]
        names = names or [name for name in there if name != "profile_id"]
        order = "start_date DESC, rowid" if "start_date" in there else "rowid"
        listed = ", ".join(map(quote, names)) or "profile_id"
        query = f"SELECT {listed} FROM {table} WHERE profile_id = ? ORDER BY {order} LIMIT ?"  # noqa: S608 - quoted
        return [_entry(row) for row in connection.execute(query, (profile, MAX_ENTRIES))]


def _refuse(code: str, message: str) -> dict[str, Any]:
    return {"success": False, "error": {"code": code, "message": message}}


def _entry(row: sqlite3.Row) -> dict[str, Any]:
    """Return the known fields of a job or school."""
    return {name: _shown(row[name]) for name in row.keys() if row[name] is not None}  # noqa: SIM118


def _shown(value: Any) -> Any:
    """Convert a value to a JSON-compatible one; long texts are cut."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value[:_MAX_TEXT] if isinstance(value, str) else value
