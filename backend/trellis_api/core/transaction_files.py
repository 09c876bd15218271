"""Files that share the fate of a transaction: kept when it commits, or removed when it does."""

import shutil
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.orm import SessionTransaction
from sqlmodel import Session


def remove_after_commit(session: Session, folder: Path) -> None:
    """Remove the folder once the transaction is committed; keep it otherwise."""
    _settle(session, folder, removes_when_committed=True)


def remove_unless_committed(session: Session, folder: Path) -> None:
    """Remove the folder when the transaction ends in any way but a commit."""
    _settle(session, folder, removes_when_committed=False)


def _settle(session: Session, folder: Path, *, removes_when_committed: bool) -> None:
    is_committed = False
    is_settled = False

    def note_commit(_session: Session) -> None:
        nonlocal is_committed
        is_committed = True

    # A session that is closed without a commit emits no rollback event, only this one.
    def settle(_session: Session, transaction: SessionTransaction) -> None:
        nonlocal is_settled
        if transaction.parent is not None or is_settled:
            return
        is_settled = True
        if is_committed is removes_when_committed:
            shutil.rmtree(folder, ignore_errors=True)

    event.listen(session, "after_commit", note_commit)
    event.listen(session, "after_transaction_end", settle)
