"""Removes what transfers have left: folders that nobody needs, and files that were not finished."""

import logging
import shutil
from pathlib import Path

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.transfers import service
from trellis_api.transfers.schemas import TransferState
from trellis_contracts.transfers import PART_ENDING

log = logging.getLogger(__name__)
_UNNEEDED = (None, TransferState.CANCELLED)


def tidy_transfers(settings: Settings, database: Database) -> None:
    """Remove folders of transfers that are gone or cancelled, and incomplete files of failed ones.

    Mostly their worker has seen to that; one that died leaves it.
    """
    parent = service.transfer_folder(settings, "x").parent
    # The folders first: one that comes later belongs to a transfer that is there.
    folders = [each for each in parent.iterdir() if each.is_dir()] if parent.is_dir() else []
    with database.read() as session:
        states = service.list_states(session, transfer_ids=[each.name for each in folders])
    for folder in folders:
        state = states.get(folder.name)
        if state in _UNNEEDED or (state == TransferState.FAILED and _parts(folder)):
            _tidy(database, folder)


def remove_parts(folder: Path) -> None:
    """Remove what was not finished; call it while the transfer is held."""
    for part in _parts(folder):
        try:
            part.unlink(missing_ok=True)
        except OSError as error:
            log.warning("could not remove %s, retrying at the next clean-up: %s", part, error)


def _tidy(database: Database, folder: Path) -> None:
    with database.write() as session:
        # Held, and looked at again: it may have been resumed meanwhile.
        transfer = service.hold(session, transfer_id=folder.name)
        state = transfer.state if transfer is not None else None
        if state in _UNNEEDED:
            shutil.rmtree(folder, ignore_errors=True)
        elif state == TransferState.FAILED:
            remove_parts(folder)


def _parts(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{PART_ENDING}"))
