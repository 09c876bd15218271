"""What a database of profiles holds: the tables and columns that the agent is told of."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

PROFILES, EXPERIENCES, EDUCATIONS, INDEX = "profiles", "experiences", "educations", "profiles_fts"
TABLES = (PROFILES, EXPERIENCES, EDUCATIONS)
#: Columns that tell of nobody.
_HIDDEN = {
    PROFILES: frozenset({"updated_at", "meta"}),
    EXPERIENCES: frozenset({"id"}),
    EDUCATIONS: frozenset({"id"}),
}
_ALWAYS = frozenset({"rid", "id", "linkedin_handle", "profile_id"})
#: Values that are looked at to find out how skills are written.
_LOOKED_AT = 100


@dataclass(frozen=True)
class Shape:
    """Tables with their columns, in the order in which they are told of."""

    columns: Mapping[str, tuple[str, ...]]
    #: Columns of the full-text index.
    indexed: tuple[str, ...]
    #: Skills are a text with ``, `` between them.
    has_comma_skills: bool = False

    def has(self, table: str) -> bool:
        """Tell whether the database has rows of that table."""
        return table in self.columns


#: Of the databases that ``generate`` makes.
GENERATED = Shape(
    columns={
        PROFILES: ("rid", "id", "linkedin_handle", "name", "summary", "about", "skills"),
        EXPERIENCES: (
            "profile_id", "title", "company", "location", "start_date", "end_date", "is_current",
            "employment_type", "description",
        ),
        EDUCATIONS: ("profile_id", "school", "degree", "field_of_study", "start_date", "end_date"),
    },
    indexed=("name", "summary", "about", "skills", "experience", "education"),
    has_comma_skills=True,
)  # fmt: skip


def read_shape(database: Path) -> Shape:
    """Read which tables and columns contain data. Raises ``sqlite3.Error``."""
    with closing(open_unchanged(database)) as connection:
        columns = {table: _filled_columns(connection, table) for table in TABLES}
        return Shape(
            columns={table: names for table, names in columns.items() if names},
            indexed=tuple(column_names(connection, INDEX)),
            has_comma_skills="skills" in columns[PROFILES] and _have_commas(connection),
        )


def open_unchanged(database: Path) -> sqlite3.Connection:
    """Open a read-only connection that creates no file beside the database."""
    return sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def column_names(connection: sqlite3.Connection, table: str, *, schema: str = "main") -> list[str]:
    """Return the names of the columns in order; empty where there is no such table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?, ?)", (table, schema))
    return [name for (name,) in rows]


def quote(name: str) -> str:
    """Quote a name for SQL if it is not a plain identifier."""
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'


def _filled_columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    shown = [name for name in column_names(connection, table) if name not in _HIDDEN[table]]
    return tuple(name for name in shown if name in _ALWAYS or _is_filled(connection, table, name))


def _is_filled(connection: sqlite3.Connection, table: str, column: str) -> bool:
    name = quote(column)
    query = f"SELECT 1 FROM {table} WHERE {name} IS NOT NULL AND {name} <> '' LIMIT 1"  # noqa: S608 - quoted
    return connection.execute(query).fetchone() is not None


def _have_commas(connection: sqlite3.Connection) -> bool:
    query = "SELECT skills FROM profiles WHERE skills <> '' LIMIT ?"
    texts = [str(text) for (text,) in connection.execute(query, (_LOOKED_AT,))]
    return any(", " in text for text in texts) and not any(text.startswith(("[", "{")) for text in texts)
