"""Transactions for tasks, on a database that is opened once per worker process (never before a fork)."""

from contextlib import AbstractContextManager
from functools import cache

from sqlmodel import Session
from trellis_api.core.database import Database

from trellis_workers.core.settings import get_settings


@cache
def get_database() -> Database:
    """Return the database of this process."""
    return Database(get_settings())


def write() -> AbstractContextManager[Session]:
    """Open a transaction that commits when the block ends. Keep calls to Ray and to the disk out of it."""
    return get_database().write()


def read() -> AbstractContextManager[Session]:
    """Open a transaction that is never committed."""
    return get_database().read()
