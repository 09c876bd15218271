"""Queries on transfers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Update, case, delete, update
from sqlmodel import Session, col, select, tuple_

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id
from trellis_api.transfers.models import Transfer
from trellis_api.transfers.schemas import TransferState

PREFIX = "trf"
_UNFINISHED = (TransferState.QUEUED.value, TransferState.RUNNING.value)


def find_transfer(session: Session, *, transfer_id: str) -> Transfer | None:
    """Return the transfer with this ID; None for anything that is not an ID."""
    return session.get(Transfer, transfer_id) if is_id(transfer_id, prefix=PREFIX) else None


def lock_transfer(session: Session, *, transfer_id: str) -> Transfer | None:
    """Lock the transfer until the transaction ends and return its current state."""
    if not is_id(transfer_id, prefix=PREFIX):
        return None
    return session.get(Transfer, transfer_id, with_for_update=True, populate_existing=True)


def list_transfers(
    session: Session, *, model_id: str | None, after: tuple[datetime, str] | None, limit: int
) -> Sequence[Transfer]:
    """List transfers, newest first."""
    query = select(Transfer)
    if model_id is not None:
        query = query.where(Transfer.model_id == model_id)
    if after:
        query = query.where(tuple_(col(Transfer.created_at), col(Transfer.id)) < after)
    newest_first = (col(Transfer.created_at).desc(), col(Transfer.id).desc())
    return session.exec(query.order_by(*newest_first).limit(limit)).all()


def transfers_of(session: Session, *, model_id: str) -> list[str]:
    """List the ids of a model's unfinished transfers."""
    query = select(Transfer.id).where(Transfer.model_id == model_id, col(Transfer.state).in_(_UNFINISHED))
    return list(session.exec(query))


def list_states(session: Session, *, transfer_ids: Sequence[str]) -> dict[str, str]:
    """Map the ids of those transfers that exist to their states."""
    query = select(Transfer.id, Transfer.state).where(col(Transfer.id).in_(transfer_ids))
    return dict(session.exec(query).all())


def add_transfer(session: Session, transfer: Transfer) -> None:
    """Insert a transfer."""
    session.add(transfer)
    session.flush()


def delete_transfer(session: Session, *, transfer_id: str) -> None:
    """Delete the row."""
    session.exec(delete(Transfer).where(col(Transfer.id) == transfer_id))


def list_due(session: Session, *, lost_before: datetime) -> Sequence[str]:
    """List the ids of those that wait, or whose worker has been silent since then; oldest first."""
    return session.exec(
        select(Transfer.id).where(_is_due(lost_before)).order_by(col(Transfer.created_at))
    ).all()


def claim_transfer(session: Session, *, transfer_id: str, lost_before: datetime) -> bool:
    """Take one that waits or was lost; False where another worker has it or nobody wants it any more."""
    now = utc_now()
    claimed = session.exec(
        update(Transfer)
        .where(col(Transfer.id) == transfer_id, _is_due(lost_before))
        .values(
            state=TransferState.RUNNING.value,
            attempt=Transfer.attempt + 1,
            losses=case((_is_lost(lost_before), col(Transfer.losses) + 1), else_=col(Transfer.losses)),
            started_at=now,
            touched_at=now,
            reason=None,
        )
    )
    return claimed.rowcount == 1


def touch_transfer(
    session: Session, *, transfer_id: str, attempt: int, progress: dict[str, Any] | None, is_further: bool
) -> bool:
    """Note a sign of life and progress; False where this attempt no longer counts."""
    news: dict[str, Any] = {} if progress is None else {"progress": progress}
    if is_further:
        news["losses"] = 0
    touched = session.exec(_update_running(transfer_id, attempt).values(touched_at=utc_now(), **news))
    return touched.rowcount == 1


def requeue_transfer(session: Session, *, transfer_id: str, attempt: int) -> bool:
    """Let it wait for another worker; False where this attempt no longer counts."""
    waits = _update_running(transfer_id, attempt).values(state=TransferState.QUEUED.value, touched_at=None)
    return session.exec(waits).rowcount == 1


def settle_transfer(
    session: Session,
    *,
    transfer_id: str,
    attempt: int,
    state: TransferState,
    reason: str | None,
    result: dict[str, Any] | None,
) -> bool:
    """Write how it ended; False where this attempt no longer counts."""
    values = {"state": state.value, "reason": reason, "result": result, "finished_at": utc_now()}
    return session.exec(_update_running(transfer_id, attempt).values(**values)).rowcount == 1


def _is_lost(lost_before: datetime) -> ColumnElement[bool]:
    """Select transfers whose worker has been silent since then."""
    return (col(Transfer.state) == TransferState.RUNNING.value) & (col(Transfer.touched_at) < lost_before)


def _is_due(lost_before: datetime) -> ColumnElement[bool]:
    """Select transfers that wait for a worker, or whose worker died."""
    return (col(Transfer.state) == TransferState.QUEUED.value) | _is_lost(lost_before)


def _update_running(transfer_id: str, attempt: int) -> Update:
    """Build an update that applies only while this attempt runs."""
    return update(Transfer).where(
        col(Transfer.id) == transfer_id,
        col(Transfer.state) == TransferState.RUNNING.value,
        col(Transfer.attempt) == attempt,
    )
