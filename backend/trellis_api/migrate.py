"""Upgrades the database: ``python -m trellis_api.migrate``."""

import sys

from trellis_api.core.migrations import UnknownSchema, upgrade
from trellis_api.core.settings import Settings

if __name__ == "__main__":
    try:
        upgrade(Settings())
    except UnknownSchema as error:
        sys.exit(str(error))
