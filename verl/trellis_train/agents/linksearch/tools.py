"""The tools of the agent: what they are called with, and what they answer."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from trellis_train.agents.linksearch.database import normalise_handle
from trellis_train.agents.linksearch.guard import MAX_ROWS, SqlGuard

#: Of jobs and schools of a profile, newest first.
MAX_ENTRIES = 10
_MAX_TEXT = 1000
SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "search_profile",
            "description": "Run one read-only SQLite SELECT over profiles, experiences, educations and the"
            " full-text index profiles_fts (rowid = profiles.rid). Returns at most 50 rows.",
            "parameters": {
                "type": "object",
                "properties": {
                    "sql": {"type": "string", "description": "One SELECT statement."},
                    "params": {
                        "type": "array",
                        "items": {"type": ["string", "number", "boolean", "null"]},
                        "description": "Values of its ? places.",
                    },
                    "max_rows": {"type": "integer", "minimum": 1, "maximum": MAX_ROWS},
                },
                "required": ["sql"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "read_profile",
            "description": "Read one profile with its jobs and schools.",
            "parameters": {
                "type": "object",
                "properties": {"linkedin_handle": {"type": "string"}},
                "required": ["linkedin_handle"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "return_results",
            "description": "Answer with the LinkedIn handles of everybody who fits. This ends the episode.",
            "parameters": {
                "type": "object",
                "properties": {
                    "results": {"type": "array", "items": {"type": "string"}},
                    "summary": {"type": "string"},
                },
                "required": ["results"],
            },
        },
    },
]
_ENTRIES = {
    "experiences": "SELECT title, company, location, start_date, end_date, is_current, employment_type,"
    " description FROM experiences WHERE profile_id = ? ORDER BY start_date DESC, id LIMIT ?",
    "educations": "SELECT school, degree, field_of_study, start_date, end_date, grade, activities,"
    " description FROM educations WHERE profile_id = ? ORDER BY start_date DESC, id LIMIT ?",
}


class ProfileTools:
    """The database behind the tools. Calls are blocking and may come from several threads."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._guard = SqlGuard(database)

    def search_profile(
        self, sql: object, params: object = None, max_rows: object = MAX_ROWS
    ) -> dict[str, Any]:
        """Rows of a statement that the model wrote (``guard.py``)."""
        rows = max_rows if isinstance(max_rows, int) and not isinstance(max_rows, bool) else MAX_ROWS
        return self._guard.run(sql, params, rows).as_tool_result()

    def read_profile(self, linkedin_handle: object) -> dict[str, Any]:
        """A profile by its handle, however that is written."""
        handle = normalise_handle(str(linkedin_handle))
        address = f"{self._database.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            query = "SELECT * FROM profiles WHERE linkedin_handle = ?"
            row = connection.execute(query, (handle.encode("utf-8", "replace").decode(),)).fetchone()
            if row is None:
                message = f"there is no profile '{handle[:100]}'"
                return {"success": False, "error": {"code": "NOT_FOUND", "message": message}}
            profile = {name: row[name] for name in row.keys() if name not in ("rid", "meta")}  # noqa: SIM118
            for name, sql in _ENTRIES.items():
                found = connection.execute(sql, (row["id"], MAX_ENTRIES)).fetchall()
                profile[name] = [_entry(each) for each in found]
        return {"success": True, "profile": profile}


def _entry(row: sqlite3.Row) -> dict[str, Any]:
    """What is known of a job or school, long texts cut."""
    shown = {name: row[name] for name in row.keys() if row[name] is not None}  # noqa: SIM118
    return {name: value[:_MAX_TEXT] if isinstance(value, str) else value for name, value in shown.items()}
