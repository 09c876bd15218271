"""Carries out transfers: claims a row, lets a child process do the work, and settles the row.

The work is done by a child so that it can be cancelled at any moment, and so that the token of the hub is
known to that process alone. The child writes its progress to a file of its folder, and as its last line
what it has made or why it cannot be done. A lost message costs nothing: beat calls ``run_waiting``, which
also takes over a transfer whose worker died. A worker that is asked to leave lets its transfer wait again.
"""

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy.exc import OperationalError
from trellis_api.cards.service import check_card, read_card
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError, means_no_room
from trellis_api.core.settings import Settings
from trellis_api.downloads.listing import list_model
from trellis_api.transfers import service
from trellis_api.transfers.models import Transfer
from trellis_api.transfers.schemas import (
    GgufCreate,
    GgufType,
    TransferKind,
    TransferProgress,
    TransferResult,
)
from trellis_contracts.dry_run import EXIT_BAD_REQUEST
from trellis_contracts.transfers import PROGRESS_FILE, PUSH_ORDER_FILE, PushedFile, PushOrder

from trellis_workers.core.child_environment import plain_environment
from trellis_workers.core.last_lines import last_lines
from trellis_workers.core.processes import STANDSTILL_S, Standstill, end_gently
from trellis_workers.transfers.tidy import remove_parts

log = logging.getLogger(__name__)
_LOOK_S = 1.0
_END_S = 5.0
_PUSH = "trellis_workers.transfers.push"
_EXPORT = "trellis_train.gguf_export"
_CARD = "README.md"


class TransferFailed(Exception):
    """It cannot be done; the message is one sentence for people."""


class NoLongerWanted(Exception):
    """It was cancelled or deleted, or another worker has it."""


class WorkerLeaves(Exception):
    """This worker is asked to leave; another one goes on with the transfer."""


@dataclass(frozen=True)
class _Work:
    """What a child is started with, and how its result is read."""

    command: list[str]
    environment: dict[str, str]


def run_waiting(
    settings: Settings, database: Database, is_leaving: Callable[[], bool] = lambda: False
) -> list[str]:
    """Carry out all that wait until the worker is asked to leave; the ids of those that this call settled."""
    with database.read() as session:
        due = service.list_due(session)
    settled = []
    for transfer_id in due:
        if is_leaving():
            break
        if run_transfer(settings, database, transfer_id=transfer_id, is_leaving=is_leaving):
            settled.append(transfer_id)
    return settled


def run_transfer(
    settings: Settings, database: Database, *, transfer_id: str, is_leaving: Callable[[], bool]
) -> bool:
    """Carry out one unless another worker does; True where this call settled it."""
    with database.write() as session:
        transfer = service.claim(session, transfer_id=transfer_id)
        if transfer is None:
            return False
        session.expunge(transfer)
    folder = service.transfer_folder(settings, transfer.id)
    try:
        work = _prepare(settings, database, transfer, folder)
        result = _follow(database, transfer, folder, work, is_leaving)
    except NoLongerWanted:
        log.info("transfer %s was cancelled", transfer.id)
        _clean_up(database, transfer, folder)
        return False
    except WorkerLeaves:
        log.info("transfer %s is left to another worker", transfer.id)
        with database.write() as session:
            service.release(session, transfer_id=transfer.id, attempt=transfer.attempt)
        return False
    except (TransferFailed, DomainError) as error:
        return _fail(database, transfer, folder, str(error))
    except OperationalError:
        raise  # it is taken up again when the database is back
    except OSError as error:
        reason = (
            "The disk is full." if means_no_room(error) else f"Could not write the files: {error.strerror}."
        )
        return _fail(database, transfer, folder, reason)
    except Exception as error:  # the edge of the process: it must not look as if the worker had died
        log.exception("transfer %s failed unexpectedly", transfer.id)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        return _fail(database, transfer, folder, f"Unexpected worker error: {said}")
    with database.write() as session:
        return service.succeed(session, transfer_id=transfer.id, attempt=transfer.attempt, result=result)


def _prepare(settings: Settings, database: Database, transfer: Transfer, folder: Path) -> _Work:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for stale in (PROGRESS_FILE, PUSH_ORDER_FILE):
        (folder / stale).unlink(missing_ok=True)
    if transfer.kind == TransferKind.PUSH:
        return _prepare_push(settings, database, transfer, folder)
    return _prepare_export(settings, database, transfer, folder)


def _prepare_push(settings: Settings, database: Database, transfer: Transfer, folder: Path) -> _Work:
    """Write what is to be pushed; the card stands beside the files: the request's, else one written anew."""
    with database.read() as session:
        model, listed = list_model(session, settings, model_id=transfer.model_id)
        card = transfer.request.get("card")
        if card is None:
            card = read_card(session, settings, model_id=model.id)
        else:  # its numbers may have changed while the push waited
            check_card(session, settings, model_id=model.id, text=card)
    files = [PushedFile(name=file.name, path=str(file.path)) for file in listed.files if file.name != _CARD]
    request = transfer.request
    order = PushOrder(
        hub=request.get("hub", "huggingface"),
        repo_id=request["repo_id"],
        revision=request["revision"],
        private=request["private"],
        message=request["message"] or f"{model.name} from Trellis",
        files=files,
        card=card,
    )
    (folder / PUSH_ORDER_FILE).write_text(order.model_dump_json(), encoding="utf-8")
    command = [sys.executable, "-m", _PUSH, str(folder)]
    return _Work(
        command,
        {**plain_environment("HF_TOKEN", "MODELSCOPE_API_TOKEN"), "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
    )


def _prepare_export(settings: Settings, database: Database, transfer: Transfer, folder: Path) -> _Work:
    request = GgufCreate.model_validate(transfer.request)
    with database.read() as session:
        model, listed = list_model(session, settings, model_id=transfer.model_id)
    needed, free = sum(file.size_bytes for file in listed.files), shutil.disk_usage(folder).free
    if request.type is GgufType.Q4_K_M:  # beside the file with 16 bits that it is made of
        needed += needed // 2
    if free - needed < settings.min_free_disk_bytes:
        raise TransferFailed(f"The file may need {needed:,} bytes, but only {free:,} bytes are free.")
    target = folder / service.file_name(model.name, request)
    source = settings.data_root / str(model.path)
    command = [str(settings.job_python or sys.executable), "-m", _EXPORT, str(source), str(target)]
    command += ["--type", request.type.value, "--name", model.name, "--progress", str(folder / PROGRESS_FILE)]
    return _Work(command, {**plain_environment(), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})


def _follow(
    database: Database, transfer: Transfer, folder: Path, work: _Work, is_leaving: Callable[[], bool]
) -> TransferResult:
    """Let the child work, note its progress, and end it where nobody wants it or this worker leaves."""
    output, log_file = folder / "result.json", folder / "transfer.log"
    with output.open("wb") as result, log_file.open("wb") as errors:
        child = subprocess.Popen(  # noqa: S603 - our own programs, with paths of our own making
            work.command,
            stdin=subprocess.DEVNULL,
            stdout=result,
            stderr=errors,
            cwd=folder,
            env=work.environment,
            start_new_session=True,  # what ends the worker from its terminal is not meant for the child
        )
        standstill = Standstill(child.pid)
        try:
            while True:
                _note(database, transfer, folder)
                if is_leaving():
                    raise WorkerLeaves
                if standstill.lasts():
                    raise TransferFailed(f"The transfer's process stood still for {STANDSTILL_S:g} s.")
                try:
                    status = child.wait(_LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    continue
        finally:
            end_gently(child, _END_S)
    if status != 0 and is_leaving():
        raise WorkerLeaves  # whoever ends the services may have ended the child as well
    _note(database, transfer, folder)
    said = (last_lines(log_file, 1) or [""])[-1].strip()
    if status == EXIT_BAD_REQUEST:
        raise TransferFailed(said)
    if status != 0:
        raise TransferFailed(f"The transfer failed with exit code {status}: {said[:300]}")
    return _read_result(output)


def _note(database: Database, transfer: Transfer, folder: Path) -> None:
    """Note progress; raises ``NoLongerWanted``. A database that is away is no reason to begin anew."""
    progress = _read_progress(folder / PROGRESS_FILE)
    reached = (transfer.progress or {}).get("done_bytes", 0)  # by the attempt before
    try:
        with database.write() as session:
            is_wanted = service.touch(
                session,
                transfer_id=transfer.id,
                attempt=transfer.attempt,
                progress=progress,
                is_further=progress is not None and progress.done_bytes > reached,
            )
    except OperationalError as error:
        log.warning("transfer %s: the database is unreachable: %s", transfer.id, error.orig)
        return
    if not is_wanted:
        raise NoLongerWanted


def _read_result(output: Path) -> TransferResult:
    """Read the child's result from its last line; libraries may have printed something before."""
    try:
        return TransferResult.model_validate_json((last_lines(output, 1) or [""])[-1])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
        raise TransferFailed(f"The transfer finished, but its result cannot be read: {first}") from error


def _read_progress(path: Path) -> TransferProgress | None:
    """Read the child's last progress report; None before it has written one."""
    try:
        return TransferProgress.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError, ValidationError):
        return None


def _clean_up(database: Database, transfer: Transfer, folder: Path) -> None:
    """Remove half a file, and all of a transfer that was deleted; never under another worker's hands."""
    with database.read() as session:
        found = service.find(session, transfer_id=transfer.id)
    if found is None or (found.attempt == transfer.attempt and not service.is_active(found)):
        shutil.rmtree(folder, ignore_errors=True)


def _fail(database: Database, transfer: Transfer, folder: Path, reason: str) -> bool:
    with database.write() as session:
        has_failed = service.fail(session, transfer_id=transfer.id, attempt=transfer.attempt, reason=reason)
        if has_failed:  # in this transaction: nobody resumes it, and writes here, before it ends
            remove_parts(folder)
    return has_failed
