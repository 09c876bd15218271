"""Upgrades the database: ``python -m trellis_api.migrate``."""

from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import Settings

if __name__ == "__main__":
    upgrade(Settings())
