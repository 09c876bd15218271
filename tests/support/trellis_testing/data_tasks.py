"""Carries out data tasks in the process of a test, with the workers' own code."""

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks.service import INTERACTIVE, LENGTHY
from trellis_workers.data.children import carry_out_here, start_process
from trellis_workers.data.run import Lane, run_waiting


def finish_data_tasks(settings: Settings, database: Database, *, in_child: bool = False) -> list[str]:
    """Carry out everything that waits, with ``in_child`` in processes of their own as workers do; the ids."""
    lane = Lane(settings, database, start_process if in_child else carry_out_here)
    return run_waiting(lane, INTERACTIVE | LENGTHY)
