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


class UnknownSchema(RuntimeError):
    """The database has a schema that this version has no migration from; nothing was changed."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"The database has the schema '{revision}', which this version does not know. If a newer version "
            "made it, use that one. If it is older than the first release, see 'Upgrading' in "
            "docs/operations.md."
        )


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
    config = make_config(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    unknown = set(MigrationContext.configure(connection).get_current_heads()) - known
    if unknown:
        raise UnknownSchema(*unknown)
    command.upgrade(config, "head")


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
