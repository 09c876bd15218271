"""Prints a one-time login link: ``python -m trellis_api.auth.login_link``."""

from trellis_api.auth.service import create_login_code
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings


def create_login_link(settings: Settings) -> str:
    """Create a link that logs in to the dashboard, once, until it expires. The database must be migrated."""
    database = Database(settings)
    try:
        with database.write() as session:
            code = create_login_code(session, lifetime_s=settings.login_link_lifetime_s)
    finally:
        database.dispose()
    return f"{settings.base_url}/login?code={code}"


if __name__ == "__main__":
    print(create_login_link(Settings()))
