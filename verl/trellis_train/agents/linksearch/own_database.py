"""Takes in a database of profiles that somebody brings: a copy with the full-text index that searches need.

The file itself is opened read-only and never written. Handles are kept in their normal form (lower case,
without the address), so that a handle is found however it is written.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from trellis_train.agents.linksearch.database import normalise_handle
from trellis_train.agents.linksearch.shape import (
    EDUCATIONS,
    EXPERIENCES,
    INDEX,
    PROFILES,
    TABLES,
    column_names,
    open_unchanged,
    quote,
)

#: A column of SQLite's own name, and the one by which the index knows a profile.
_OURS = frozenset({"rid", "rowid", "oid", "_rowid_"})
_REQUIRED = ("id", "linkedin_handle")
_SEARCHED = ("name", "summary", "about", "skills")
#: Of a job or a school, what is searched in; where none of them is there, every column that holds text.
_SEARCHED_OF = {
    EXPERIENCES: ("title", "company", "location"),
    EDUCATIONS: ("school", "degree", "field_of_study"),
}
_INDEXED_AS = {EXPERIENCES: "experience", EDUCATIONS: "education"}
_NAMED_DUPLICATES = 3


class BadDatabase(ValueError):
    """The file is no database of profiles that can be used; the message says why."""


@dataclass(frozen=True)
class Copied:
    """What was taken in."""

    profiles: int
    #: Profiles without a handle, which no answer could name.
    without_handle: int


def is_indexed(database: Path) -> bool:
    """Tell whether the file can be searched as it is: ``generate`` or ``copy_database`` wrote it."""
    try:
        with closing(open_unchanged(database)) as connection:
            has_index = bool(column_names(connection, INDEX))
            return has_index and {"rid", *_REQUIRED} <= set(column_names(connection, PROFILES))
    except sqlite3.Error:
        return False


def copy_database(source: Path, target: Path) -> Copied:
    """Write ``target``: all columns of the three tables of ``source``, and the index; whole or not at all.

    The same file gives the same bytes. Raises ``BadDatabase``.
    """
    _require_settled(source)
    staging = target.with_name(f".{target.name}.writing")
    staging.unlink(missing_ok=True)
    try:
        with closing(
            sqlite3.connect(staging.resolve().as_uri(), uri=True, isolation_level=None)
        ) as connection:
            copied = _fill(connection, source)
        os.replace(staging, target)
    except sqlite3.Error as error:
        raise BadDatabase(f"{source.name} cannot be read as a database of profiles: {error}") from error
    finally:
        staging.unlink(missing_ok=True)
    return copied


def _require_settled(source: Path) -> None:
    """Raise ``BadDatabase`` for a missing file or one with uncommitted changes.

    The database is opened as immutable, so SQLite would ignore a WAL or journal beside it.
    """
    if not source.is_file():
        raise BadDatabase(f"Database not found: {source}")
    for ending in ("-wal", "-journal"):
        beside = source.with_name(source.name + ending)
        if beside.is_file() and beside.stat().st_size:
            raise BadDatabase(
                f"{source.name} has uncommitted changes ({beside.name}):"
                " close the program that is writing to it and try again"
            )


def _fill(connection: sqlite3.Connection, source: Path) -> Copied:
    # A file of its own that nobody reads yet: nothing has to survive a crash of the machine.
    connection.executescript(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA trusted_schema = OFF;"
    )
    connection.execute("ATTACH ? AS own", (f"{source.resolve().as_uri()}?mode=ro&immutable=1",))
    connection.create_function("normal_handle", 1, _normal, deterministic=True)
    columns = {table: _columns_of(connection, table) for table in TABLES}
    _require_columns(source, columns)
    connection.execute("BEGIN")
    _copy_profiles(connection, columns[PROFILES])
    _refuse_duplicates(connection, source)
    for table in (EXPERIENCES, EDUCATIONS):
        if columns[table]:
            _copy_entries(connection, table, columns[table])
    _write_index(connection, columns)
    connection.execute("COMMIT")
    (kept,) = connection.execute("SELECT count(*) FROM main.profiles").fetchone()
    (found,) = connection.execute("SELECT count(*) FROM own.profiles").fetchone()
    if not kept:
        raise BadDatabase(f"{source.name} contains no profile with a linkedin_handle")
    connection.execute("DETACH own")
    return Copied(profiles=kept, without_handle=found - kept)


def _normal(handle: object) -> str | None:
    """Return the handle in normalized form, or None if there is none."""
    return (normalise_handle(handle) or None) if isinstance(handle, str) else None


def _columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [name for name in column_names(connection, table, schema="own") if name.lower() not in _OURS]


def _require_columns(source: Path, columns: dict[str, list[str]]) -> None:
    if not columns[PROFILES]:
        raise BadDatabase(f"{source.name} has no table {PROFILES}")
    if missing := [name for name in _REQUIRED if name not in columns[PROFILES]]:
        raise BadDatabase(f"The table {PROFILES} of {source.name} has no column {', '.join(missing)}")
    if not set(_SEARCHED) & set(columns[PROFILES]):
        raise BadDatabase(
            f"The table {PROFILES} of {source.name} has none of the columns {', '.join(_SEARCHED)}"
        )
    for table in (EXPERIENCES, EDUCATIONS):
        if columns[table] and "profile_id" not in columns[table]:
            raise BadDatabase(
                f"The table {table} of {source.name} has no column profile_id, the id of a profile"
            )


def _copy_profiles(connection: sqlite3.Connection, columns: Sequence[str]) -> None:
    # Names alone: a column without a type keeps every value as it is.
    declared = ", ".join(
        "linkedin_handle TEXT NOT NULL COLLATE NOCASE" if name == "linkedin_handle" else quote(name)
        for name in columns
    )
    names = ", ".join(map(quote, columns))
    values = ", ".join(
        "normal_handle(linkedin_handle)" if name == "linkedin_handle" else quote(name) for name in columns
    )
    connection.execute(f"CREATE TABLE main.profiles (rid INTEGER PRIMARY KEY, {declared})")
    connection.execute(
        f"INSERT INTO main.profiles ({names}) SELECT {values} FROM own.profiles"  # noqa: S608 - quoted
        " WHERE normal_handle(linkedin_handle) IS NOT NULL ORDER BY id"
    )


def _refuse_duplicates(connection: sqlite3.Connection, source: Path) -> None:
    """Raise ``BadDatabase`` if two profiles share a handle or an ID, which would be ambiguous."""
    for column in ("linkedin_handle", "id"):
        query = (
            f"SELECT {column}, count(*) FROM main.profiles GROUP BY {column}"  # noqa: S608 - ours
            f" HAVING count(*) > 1 OR {column} IS NULL ORDER BY 1 LIMIT {_NAMED_DUPLICATES}"
        )
        found = [f"{value!r} ({count} profiles)" for value, count in connection.execute(query)]
        if found:
            raise BadDatabase(
                f"Each profile needs a unique {column}; duplicates in {source.name}: {', '.join(found)}"
            )
    connection.execute("CREATE UNIQUE INDEX main.profiles_by_handle ON profiles (linkedin_handle)")
    connection.execute("CREATE UNIQUE INDEX main.profiles_by_id ON profiles (id)")


def _copy_entries(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> None:
    names = ", ".join(map(quote, columns))
    connection.execute(f"CREATE TABLE main.{table} ({names})")
    connection.execute(
        f"INSERT INTO main.{table} SELECT {names} FROM own.{table}"  # noqa: S608 - quoted
        f" WHERE profile_id IN (SELECT id FROM main.profiles) ORDER BY {names}"
    )
    connection.execute(f"CREATE INDEX main.{table}_of ON {table} (profile_id)")


def _write_index(connection: sqlite3.Connection, columns: dict[str, list[str]]) -> None:
    """Build the full-text index over each profile's own text and that of its jobs and schools."""
    own = [name for name in _SEARCHED if name in columns[PROFILES]]
    told = {name: f"CAST({name} AS TEXT)" for name in own}
    for table, name in _INDEXED_AS.items():
        if columns[table]:
            told[name] = (
                f"(SELECT group_concat({_joined(table, columns[table])}, ' ; ') FROM main.{table} AS e"  # noqa: S608
                " WHERE e.profile_id = p.id)"
            )
    connection.execute(f"CREATE VIRTUAL TABLE main.{INDEX} USING fts5 ({', '.join(told)})")
    connection.execute(
        f"INSERT INTO main.{INDEX} (rowid, {', '.join(told)})"  # noqa: S608 - names of ours
        f" SELECT rid, {', '.join(told.values())} FROM main.profiles AS p"
    )
    connection.execute(f"INSERT INTO main.{INDEX} ({INDEX}) VALUES ('optimize')")  # noqa: S608 - ours


def _joined(table: str, columns: Sequence[str]) -> str:
    """Return an SQL expression that joins the searched columns of a job or school into one text."""
    chosen = [name for name in _SEARCHED_OF[table] if name in columns]
    chosen = chosen or [name for name in columns if name not in ("id", "profile_id")]
    return " || ' ' || ".join(f"coalesce(CAST({quote(name)} AS TEXT), '')" for name in chosen) or "''"
