"""Runs migrations on the connection that the platform hands over, or on the one of the settings."""

from alembic import context
from sqlalchemy import Connection
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.tables import metadata


def run(connection: Connection) -> None:
    """Run what is asked for in the transaction of the connection."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with Database(Settings()).engine.begin() as own:
        run(own)
