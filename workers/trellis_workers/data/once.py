"""Carries out the data tasks that wait, without a broker: ``python -m trellis_workers.data.once``."""

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks.service import INTERACTIVE, LENGTHY

from trellis_workers.data.run import Lane, run_waiting


def main() -> None:
    """Do what the lanes of a worker do, one task after the other."""
    settings = Settings()
    database = Database(settings)
    try:
        run_waiting(Lane(settings, database), INTERACTIVE | LENGTHY)
    finally:
        database.dispose()


if __name__ == "__main__":
    main()
