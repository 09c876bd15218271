"""Connections and the one place that commits: a transaction ends here, never in a service.

SQLite runs in WAL mode. A transaction that reads first and writes later can fail
at once there (its snapshot is stale and no waiting helps), so a writing
transaction takes the write lock when it begins.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlmodel import Session

from trellis_api.core.settings import Settings

log = logging.getLogger(__name__)

BUSY_TIMEOUT_MS = 15_000
#: Of each connection of SQLite. What a page asks for fits; with a large database, each that is open fills
#: its own, and the next level is the system's page cache.
_CACHE_KIB = 16 * 1024
#: A writing transaction that takes longer is logged: on SQLite, nobody else can write meanwhile.
LONG_WRITE_S = 5.0


class Database:
    """The engine and its two kinds of transactions."""

    def __init__(self, settings: Settings) -> None:
        self.url = make_url(settings.effective_database_url)
        if self.url.drivername == "postgresql":
            self.url = self.url.set(drivername="postgresql+psycopg")
        self.engine = _create_engine(self.url.render_as_string(hide_password=False))
        self._writer: Engine | Connection = self.engine.execution_options(trellis_begin="IMMEDIATE")
        self._reader: Engine | Connection = self.engine.execution_options(trellis_begin="DEFERRED")

    @classmethod
    def bound_to(cls, settings: Settings, connection: Connection) -> "Database":
        """Create a database whose transactions are savepoints of a connection that its owner rolls back."""
        database = cls(settings)
        database._writer = database._reader = connection
        return database

    @property
    def is_sqlite(self) -> bool:
        """Whether the embedded database is in use."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def write(self, what: str = "") -> Iterator[Session]:
        """Open a transaction that commits when the block ends and rolls back when it raises.

        ``what`` says in the log who held a transaction too long; without it the caller's stack does.
        """
        with self._open(self._writer) as session:
            # Taking the lock now: waiting for it is bounded by the busy time-out.
            session.connection()
            began = time.monotonic()
            try:
                yield session
                session.commit()
            finally:
                took_s = time.monotonic() - began
                if took_s > LONG_WRITE_S:
                    log.warning("a write transaction took %.1f s: %s", took_s, what, stack_info=not what)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a transaction that is never committed."""
        with self._open(self._reader) as session:
            yield session

    def _open(self, bind: Engine | Connection) -> Session:
        return Session(bind, expire_on_commit=False, join_transaction_mode="create_savepoint")

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def take_turns(session: Session, *, key: int) -> None:
    """Let one transaction at a time go on from here; on SQLite, which has one writer, it does anyway.

    ``key`` is that of a PostgreSQL advisory lock.
    """
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def _create_engine(url: str) -> Engine:
    options: dict[str, Any] = {"json_serializer": _dump_json, "json_deserializer": orjson.loads}
    if not url.startswith("sqlite"):
        return create_engine(url, pool_size=10, max_overflow=30, pool_pre_ping=True, **options)
    engine = create_engine(
        url,
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
        pool_size=20,
        max_overflow=30,
        # The connection that was used last has the warm cache; in turns, all of them would fill theirs.
        pool_use_lifo=True,
        **options,
    )
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _dump_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _configure_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver must not begin transactions itself: it would take no lock for reads before writes.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
        f"cache_size=-{_CACHE_KIB}",
        "temp_store=MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('trellis_begin', 'DEFERRED')}")
