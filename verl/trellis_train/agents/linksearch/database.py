"""The database of profiles: its tables, how it is written, and how profiles are named in it."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

SCHEMA = """
CREATE TABLE profiles (
    rid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, linkedin_handle TEXT UNIQUE NOT NULL,
    name TEXT NOT NULL, summary TEXT, about TEXT, skills TEXT, updated_at TEXT, meta TEXT
);
CREATE TABLE experiences (
    id INTEGER PRIMARY KEY, profile_id TEXT NOT NULL REFERENCES profiles (id), title TEXT, company TEXT,
    location TEXT, start_date TEXT, end_date TEXT, is_current INTEGER NOT NULL DEFAULT 0,
    employment_type TEXT, description TEXT
);
CREATE TABLE educations (
    id INTEGER PRIMARY KEY, profile_id TEXT NOT NULL REFERENCES profiles (id), school TEXT, degree TEXT,
    field_of_study TEXT, start_date TEXT, end_date TEXT, grade TEXT, activities TEXT, description TEXT
);
CREATE INDEX experiences_of ON experiences (profile_id);
CREATE INDEX educations_of ON educations (profile_id);
CREATE VIRTUAL TABLE profiles_fts USING fts5 (name, summary, about, skills, experience, education);
"""
#: The texts that are searched in: a profile's own, and those of its jobs and schools.
_FILL_INDEX = """
INSERT INTO profiles_fts (rowid, name, summary, about, skills, experience, education)
SELECT rid, name, summary, about, skills,
    (SELECT group_concat(title || ' ' || company || ' ' || coalesce(location, ''), ' ; ')
     FROM experiences WHERE profile_id = profiles.id),
    (SELECT group_concat(school || ' ' || degree || ' ' || field_of_study, ' ; ')
     FROM educations WHERE profile_id = profiles.id)
FROM profiles
"""


@dataclass(frozen=True)
class Experience:
    """A job; dates are ``YYYY-MM``, the end of one that lasts is None."""

    title: str
    company: str
    location: str
    start_date: str
    end_date: str | None
    employment_type: str
    description: str

    @property
    def is_current(self) -> bool:
        return self.end_date is None


@dataclass(frozen=True)
class Education:
    """Years at a school; dates are ``YYYY``."""

    school: str
    degree: str
    field_of_study: str
    start_date: str
    end_date: str


@dataclass(frozen=True)
class Profile:
    """A person of the database."""

    rid: int
    handle: str
    name: str
    summary: str
    about: str
    skills: tuple[str, ...]
    updated_at: str
    experiences: tuple[Experience, ...] = field(default=())
    educations: tuple[Education, ...] = field(default=())

    @property
    def id(self) -> str:
        return f"p{self.rid:06d}"


def write_database(path: Path, profiles: Iterable[Profile]) -> None:
    """Write the database; it appears whole or not at all. The same profiles give the same bytes."""
    staging = path.with_name(f".{path.name}.writing")
    staging.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(staging, isolation_level=None)) as connection:
            # A file of its own that nobody reads yet: nothing has to survive a crash of the machine.
            connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + SCHEMA)
            connection.execute("BEGIN")
            for profile in profiles:
                _insert(connection, profile)
            connection.execute(_FILL_INDEX)
            connection.execute("INSERT INTO profiles_fts (profiles_fts) VALUES ('optimize')")
            connection.execute("COMMIT")
        os.replace(staging, path)
    finally:
        staging.unlink(missing_ok=True)


def _insert(connection: sqlite3.Connection, profile: Profile) -> None:
    skills = ", ".join(profile.skills)
    connection.execute(
        "INSERT INTO profiles VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        (
            profile.rid,
            profile.id,
            profile.handle,
            profile.name,
            profile.summary,
            profile.about,
            skills,
            profile.updated_at,
        ),
    )
    connection.executemany(
        "INSERT INTO experiences (profile_id, title, company, location, start_date, end_date, is_current,"
        " employment_type, description) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                profile.id,
                job.title,
                job.company,
                job.location,
                job.start_date,
                job.end_date,
                int(job.is_current),
                job.employment_type,
                job.description,
            )
            for job in profile.experiences
        ],
    )
    connection.executemany(
        "INSERT INTO educations (profile_id, school, degree, field_of_study, start_date, end_date)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (profile.id, each.school, each.degree, each.field_of_study, each.start_date, each.end_date)
            for each in profile.educations
        ],
    )


def normalise_handle(text: str) -> str:
    """Extract the handle from text or a URL: lowercase, without spaces or ``@``, %-codes decoded.

    >>> normalise_handle(" https://www.linkedin.com/in/Ada-Byron%2D1/?x=1 "), normalise_handle("@ADA")
    ('ada-byron-1', 'ada')
    """
    text = unquote(text.strip())
    if "/" in text:
        parts = [part for part in _path_of(text).split("/") if part]
        text = parts[-1] if parts else ""
    return text.strip().lstrip("@").lower()


def _path_of(text: str) -> str:
    """Return the path of a URL; other text is returned unchanged."""
    try:
        return urlsplit(text if "//" in text else f"//{text}").path
    except ValueError:  # such as "http://[x"
        return text
