"""Cache responses of paid APIs so that a resumed run does not pay twice."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

_TABLE = "CREATE TABLE IF NOT EXISTS replies (digest BLOB PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
_AT_A_TIME = 500


class PaidReplies:
    """A file of replies by the digest of what was asked; several processes may use it at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, digests: Iterable[bytes]) -> dict[bytes, str]:
        """Return the replies that are already stored."""
        wanted = list(digests)
        found: dict[bytes, str] = {}
        with closing(self._open()) as database:
            for start in range(0, len(wanted), _AT_A_TIME):
                some = wanted[start : start + _AT_A_TIME]
                marks = ",".join("?" * len(some))
                query = f"SELECT digest, reply FROM replies WHERE digest IN ({marks})"  # noqa: S608 - marks only
                found.update(database.execute(query, some).fetchall())
        return found

    def add(self, digest: bytes, reply: str) -> None:
        """Remember one; it is on disk afterwards."""
        with closing(self._open()) as database, database:
            database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (digest, reply))

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self._path, timeout=60)
        database.execute(_TABLE)
        return database
