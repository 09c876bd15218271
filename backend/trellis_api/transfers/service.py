"""Decides about transfers: which may begin, who works on one, and how it ends."""

import logging
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from sqlmodel import Session

from trellis_api.cards.service import check_card
from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.redaction import redact
from trellis_api.core.settings import Settings
from trellis_api.core.transaction_files import remove_after_commit
from trellis_api.downloads.listing import list_model
from trellis_api.models.repository import find_model, lock_model
from trellis_api.models.service import get_model
from trellis_api.transfers import repository
from trellis_api.transfers.errors import (
    ModelNotTransferable,
    TransferFileMissing,
    TransferFinished,
    TransferNotFound,
    TransferNotResumable,
    TransferUnfinished,
)
from trellis_api.transfers.models import Transfer
from trellis_api.transfers.schemas import (
    TRANSFER_FINISHED,
    GgufCreate,
    PushCreate,
    TransferKind,
    TransferProgress,
    TransferRead,
    TransferResult,
    TransferState,
)

log = logging.getLogger(__name__)
#: A worker shows a sign of life every second.
LOST_AFTER = timedelta(seconds=60)
#: A transfer that loses its worker this often is given up: the cause lies in it.
MAX_LOSSES = 3
_MAX_REASON = 1000


def transfer_folder(settings: Settings, transfer_id: str) -> Path:
    """Return the folder of a transfer's files."""
    return settings.data_root / "transfers" / transfer_id


def begin_push(session: Session, settings: Settings, *, model_id: str, request: PushCreate) -> Transfer:
    """Queue a push of the model's files and its card. Raises ``CardOutdated`` for one with old numbers."""
    if request.card is not None:
        check_card(session, settings, model_id=model_id, text=request.card)
    return _begin(session, settings, TransferKind.PUSH, model_id, request)


def begin_gguf(session: Session, settings: Settings, *, model_id: str, request: GgufCreate) -> Transfer:
    """Queue an export. Raises ``ModelNotTransferable`` for an adapter: GGUF files hold whole models."""
    model = get_model(session, model_id=model_id)
    if any(warning.get("code") == "adapter_only" for warning in model.warnings):
        raise ModelNotTransferable(
            f"{model.name} is an adapter, and a GGUF file holds a whole model: export its checkpoint "
            "merged first.",
            {"model": model.id},
        )
    return _begin(session, settings, TransferKind.GGUF, model_id, request)


def _begin(
    session: Session,
    settings: Settings,
    kind: TransferKind,
    model_id: str,
    request: PushCreate | GgufCreate,
) -> Transfer:
    # Held, so that it is not deleted before the transfer can be seen.
    lock_model(session, model_id=model_id, is_shared=True)
    model, _folder = list_model(session, settings, model_id=model_id)
    transfer = Transfer(
        id=new_id(repository.PREFIX),
        kind=kind.value,
        state=TransferState.QUEUED.value,
        model_id=model.id,
        model_name=model.name,
        request=request.model_dump(mode="json"),
    )
    repository.add_transfer(session, transfer)
    return transfer


def get_transfer(session: Session, *, transfer_id: str) -> Transfer:
    """Return the transfer; 404 if there is none."""
    found = repository.find_transfer(session, transfer_id=transfer_id)
    if found is None:
        raise TransferNotFound(f"There is no transfer '{transfer_id[:40]}'.")
    return found


def list_page(
    session: Session, settings: Settings, *, model_id: str | None, cursor: str | None, limit: int
) -> Page[TransferRead]:
    """List one page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_transfers(session, model_id=model_id, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=[present(settings, row) for row in shown], next_cursor=next_cursor)


def present(settings: Settings, transfer: Transfer) -> TransferRead:
    """Present a transfer as clients see it."""
    read = TransferRead.model_validate(transfer)
    read.has_own_card = read.request.get("card") is not None
    read.request = {name: value for name, value in read.request.items() if name != "card"}
    read.can_cancel = read.state not in TRANSFER_FINISHED
    read.can_resume = read.state in (TransferState.FAILED, TransferState.CANCELLED)
    read.has_file = _find_file(settings, transfer) is not None
    return read


def cancel(session: Session, *, transfer_id: str) -> Transfer:
    """End one that waits or runs; the worker that carries it out notices within a second."""
    transfer = _lock(session, transfer_id)
    if transfer.state in TRANSFER_FINISHED:
        raise TransferFinished(f"The transfer has {transfer.state} already.")
    transfer.state, transfer.finished_at = TransferState.CANCELLED.value, utc_now()
    session.add(transfer)
    session.flush()
    return transfer


def resume(session: Session, *, transfer_id: str) -> Transfer:
    """Let one that failed or was cancelled go on; what the hub has already is not sent again."""
    transfer = _lock(session, transfer_id)
    if transfer.state not in (TransferState.FAILED, TransferState.CANCELLED):
        raise TransferNotResumable(
            f"The transfer is {transfer.state}; only one that failed or was canceled goes on."
        )
    lock_model(session, model_id=transfer.model_id, is_shared=True)
    if find_model(session, model_id=transfer.model_id) is None:
        raise TransferNotResumable(f"The model {transfer.model_name} was deleted.")
    transfer.state = TransferState.QUEUED.value
    transfer.reason = transfer.finished_at = transfer.touched_at = None
    transfer.losses = 0
    session.add(transfer)
    session.flush()
    return transfer


def delete(session: Session, settings: Settings, *, transfer_id: str) -> None:
    """Forget a finished transfer, and remove its file."""
    transfer = _lock(session, transfer_id)
    if transfer.state not in TRANSFER_FINISHED:
        raise TransferUnfinished("The transfer waits or runs; cancel it first.")
    repository.delete_transfer(session, transfer_id=transfer.id)
    remove_after_commit(session, transfer_folder(settings, transfer.id))


def file_of(settings: Settings, transfer: Transfer) -> Path:
    """Return the file that an export has made; ``TransferFileMissing`` without one."""
    path = _find_file(settings, transfer)
    if path is None:
        raise TransferFileMissing("The transfer has no file: it is no export, or is not done.")
    return path


def file_name(model_name: str, request: GgufCreate) -> str:
    """Name the file of an export after the model, without characters that file systems may refuse."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", model_name).strip("-.") or "model"
    return f"{stem}.{request.type.value}.gguf"


def _find_file(settings: Settings, transfer: Transfer) -> Path | None:
    if transfer.state != TransferState.SUCCEEDED or not (transfer.result or {}).get("file"):
        return None
    path = transfer_folder(settings, transfer.id) / str((transfer.result or {})["file"])
    return path if path.is_file() else None


def _lock(session: Session, transfer_id: str) -> Transfer:
    transfer = repository.lock_transfer(session, transfer_id=transfer_id)
    if transfer is None:
        raise TransferNotFound(f"There is no transfer '{transfer_id[:40]}'.")
    return transfer


# -- for workers


def find(session: Session, *, transfer_id: str) -> Transfer | None:
    """Return the transfer, if it still exists."""
    return repository.find_transfer(session, transfer_id=transfer_id)


def hold(session: Session, *, transfer_id: str) -> Transfer | None:
    """Lock the transfer until the transaction ends and return it, if it still exists."""
    return repository.lock_transfer(session, transfer_id=transfer_id)


def list_states(session: Session, *, transfer_ids: Sequence[str]) -> dict[str, str]:
    """Map the ids of those transfers that exist to their states."""
    return repository.list_states(session, transfer_ids=transfer_ids)


def is_active(transfer: Transfer) -> bool:
    """Tell whether it waits or runs."""
    return transfer.state not in TRANSFER_FINISHED


def list_due(session: Session) -> Sequence[str]:
    """List those that wait, and those whose worker has died."""
    return repository.list_due(session, lost_before=utc_now() - LOST_AFTER)


def claim(session: Session, *, transfer_id: str) -> Transfer | None:
    """Take one; None where another worker has it, nobody wants it, or it has lost too many workers."""
    if not repository.claim_transfer(session, transfer_id=transfer_id, lost_before=utc_now() - LOST_AFTER):
        return None
    transfer = repository.lock_transfer(session, transfer_id=transfer_id)
    if transfer is not None and transfer.losses >= MAX_LOSSES:
        reason = f"The worker that carried it out has died {MAX_LOSSES} times."
        fail(session, transfer_id=transfer_id, attempt=transfer.attempt, reason=reason)
        return None
    return transfer


def touch(
    session: Session,
    *,
    transfer_id: str,
    attempt: int,
    progress: TransferProgress | None,
    is_further: bool = False,
) -> bool:
    """Note a sign of life; False where it was cancelled, deleted, or taken by another worker.

    ``is_further`` says that the attempt has come further than the one before: losses begin anew.
    """
    news = progress.model_dump(mode="json") if progress else None
    return repository.touch_transfer(
        session, transfer_id=transfer_id, attempt=attempt, progress=news, is_further=is_further
    )


def release(session: Session, *, transfer_id: str, attempt: int) -> bool:
    """Let it wait for another worker, because this one leaves; that is no loss."""
    return repository.requeue_transfer(session, transfer_id=transfer_id, attempt=attempt)


def succeed(session: Session, *, transfer_id: str, attempt: int, result: TransferResult) -> bool:
    """Write what it has left; False where this attempt no longer counts."""
    document = result.model_dump(mode="json", exclude_none=True)
    return repository.settle_transfer(
        session,
        transfer_id=transfer_id,
        attempt=attempt,
        state=TransferState.SUCCEEDED,
        reason=None,
        result=document,
    )


def fail(session: Session, *, transfer_id: str, attempt: int, reason: str) -> bool:
    """Write why it failed, without secrets; False where this attempt no longer counts."""
    log.warning("transfer %s failed: %s", transfer_id, reason)
    return repository.settle_transfer(
        session,
        transfer_id=transfer_id,
        attempt=attempt,
        state=TransferState.FAILED,
        reason=redact(reason)[:_MAX_REASON],
        result=None,
    )
