"""Rows of a request or out of the database: written as an upload, which is imported as any other."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlmodel import Session
from trellis_contracts.data_tasks import DataTaskKind, UploadSource
from trellis_contracts.recipe import DataFormat

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.core.texts import storable
from trellis_api.data_tasks import repository as tasks_repository
from trellis_api.datasets import imports, service
from trellis_api.datasets.errors import DatasetNotReady, RowsUnfit
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.schemas import ConversationRow, DatasetOrigin, GivenRow, PairRow, RowMessage
from trellis_api.datasets.states import DatasetState
from trellis_api.uploads import storage
from trellis_api.uploads.storage import StoredUpload, UploadRecord

_FILENAME = "rows.jsonl"


def write_upload(
    settings: Settings, rows: Iterable[Mapping[str, object]], *, filename: str = _FILENAME
) -> StoredUpload | None:
    """Write an upload with one line for each row; None if there are no rows."""
    upload = storage.reserve(settings)
    try:
        size, sha256 = _write(upload, rows)
    except BaseException:
        upload.remove()
        raise
    if size == 0:
        upload.remove()
        return None
    record = UploadRecord(filename=filename, size_bytes=size, sha256=sha256, created_at=utc_now())
    upload.write_record(record)
    return upload


@contextmanager
def importing(settings: Settings, upload: StoredUpload) -> Iterator[tuple[UploadSource, DatasetOrigin]]:
    """Yield the upload as an import source, with its origin; remove it if the import request fails."""
    try:
        source = UploadSource(upload=upload.id)
        yield source, imports.find_origin(settings, source)
    except BaseException:
        upload.remove()
        raise


def write_given(settings: Settings, rows: Sequence[GivenRow]) -> StoredUpload:
    """Write an upload with the rows of a request, which has at least one."""
    upload = write_upload(settings, map(_as_line, rows))
    assert upload is not None  # noqa: S101 - the schema has seen to it
    return upload


def check_fit(session: Session, *, dataset_id: str, rows: Sequence[GivenRow]) -> None:
    """Raise ``RowsUnfit`` if a dataset has rows of another kind: no recipe could train on the mixture."""
    dataset = service.get_dataset(session, dataset_id=dataset_id)
    # Of two imports at once the later one to end finds the branch moved, and its rows would be lost.
    unfinished = tasks_repository.list_unfinished_tasks(session, dataset_id=dataset_id)
    if any(task.kind == DataTaskKind.IMPORT for task in unfinished):
        raise DatasetNotReady(f"Rows are being added to '{dataset.name}'. Try again in a moment.")
    if dataset.state != DatasetState.READY:
        return
    is_pair = isinstance(rows[0], PairRow)
    wanted = DataFormat.PREFERENCE if is_pair else DataFormat.MESSAGES
    if dataset.format != wanted.value:
        raise RowsUnfit(
            f"The rows of '{dataset.name}' have the format {dataset.format}, not {wanted.value}. Choose "
            "another dataset, or create one.",
            {"dataset": dataset.name, "format": dataset.format, "wanted": wanted.value},
        )
    for name in ("prompt", "chosen", "rejected") if is_pair else ("messages",):
        _check_column(dataset, name, wanted)


def _check_column(dataset: Dataset, name: str, wanted: DataFormat) -> None:
    types = {column["name"]: str(column["type"]) for column in dataset.columns}
    found = types.get(name, "")
    if not (found.startswith("list<object{") and "role: text" in found and "content: text" in found):
        raise RowsUnfit(
            f"'{dataset.name}' has no column '{name}' with lists of messages (role and content). Choose "
            "another dataset, or create one.",
            {"dataset": dataset.name, "format": dataset.format, "wanted": wanted.value, "column": name},
        )


def _write(upload: StoredUpload, rows: Iterable[Mapping[str, object]]) -> tuple[int, str]:
    """Write the rows as JSON lines, and return their size and hash."""
    digest, size = hashlib.sha256(), 0
    with upload.path.open("wb") as output:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            size += output.write(line)
    return size, digest.hexdigest()


def _as_line(row: GivenRow) -> dict[str, object]:
    """Convert a row to its form in a file; tools are JSON in a text, as in fine-tuning files."""
    match row:
        case ConversationRow():
            tools = {"tools": json.dumps(row.tools, ensure_ascii=False)} if row.tools else {}
            return {"messages": _as_messages(row.messages), **tools}
        case PairRow():
            sides = {"prompt": row.prompt, "chosen": row.chosen, "rejected": row.rejected}
            return {name: _as_messages(messages) for name, messages in sides.items()}


def _as_messages(messages: Sequence[RowMessage]) -> list[dict[str, Any]]:
    plain = [each.model_dump(mode="json", exclude_none=True) for each in messages]
    # A surrogate half, as JSON may hold, is no text that a file can.
    return [{**each, "content": storable(each.get("content") or "")} for each in plain]
