"""Brings the database to the schema of this version."""

from functools import lru_cache

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from trellis_api.core.database import Database
from trellis_api.core.settings import REPOSITORY_ROOT, Settings

MIGRATIONS = REPOSITORY_ROOT / "backend" / "migrations"


def upgrade(settings: Settings) -> None:
    """Run all migrations that are missing; makes the data root and the database file if need be."""
    settings.data_root.mkdir(parents=True, exist_ok=True)
    database = Database(settings)
    try:
        with database.engine.execution_options(trellis_begin="IMMEDIATE").begin() as connection:
            upgrade_connection(connection)
    finally:
        database.dispose()


def upgrade_connection(connection: Connection) -> None:
    """Run all migrations that are missing, in the transaction of a connection."""
    command.upgrade(make_config(connection), "head")


def check(connection: Connection) -> None:
    """Raise where the tables differ from what the code expects."""
    command.check(make_config(connection))


def is_current(connection: Connection) -> bool:
    """Tell whether the database has the schema of this version."""
    return set(MigrationContext.configure(connection).get_current_heads()) == _heads()


def make_config(connection: Connection) -> Config:
    """Make Alembic's configuration for work on an open connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@lru_cache(maxsize=1)
def _heads() -> set[str]:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return set(ScriptDirectory.from_config(config).get_heads())
