"""The rows that imports did not take: a file of JSON lines an import."""

from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from sqlmodel import Session
from trellis_contracts.data_tasks import DataTaskKind

from trellis_api.core.settings import Settings
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import repository, service
from trellis_api.datasets.errors import QuarantineNotFound
from trellis_api.datasets.quarantine_index import STEP, find_index
from trellis_api.datasets.schemas import QuarantinedRow, QuarantineRead


def locate(settings: Settings, *, dataset_id: str, task_id: str) -> Path:
    """Return the path of the rows that an import rejected."""
    return settings.data_root / "datasets" / dataset_id / "quarantine" / f"{task_id}.jsonl"


def read_page(
    session: Session, settings: Settings, *, dataset_id: str, task_id: str | None, offset: int, limit: int
) -> QuarantineRead:
    """Read a page of the rows that an import rejected; empty if it took all."""
    task = _find_import(session, dataset_id=dataset_id, task_id=task_id)
    path = locate(settings, dataset_id=dataset_id, task_id=task.id) if task else None
    if task is None or path is None or not path.is_file():
        return QuarantineRead(offset=offset, row_count=0, reasons={}, rows=[])
    reasons = _count(task, path)
    count = sum(reasons.values())
    lines = _lines(path, offset, limit) if offset < count else []
    return QuarantineRead(
        offset=offset, row_count=count, reasons=reasons, rows=[_read_row(line) for line in lines]
    )


def find_file(session: Session, settings: Settings, *, dataset_id: str, task_id: str | None) -> Path:
    """Return the file with the rows that an import rejected; 404 if it took all."""
    task = _find_import(session, dataset_id=dataset_id, task_id=task_id)
    path = locate(settings, dataset_id=dataset_id, task_id=task.id) if task else None
    if path is None or not path.is_file():
        raise QuarantineNotFound("The import has no quarantined rows.")
    return path


def _find_import(session: Session, *, dataset_id: str, task_id: str | None) -> DataTask | None:
    service.get_dataset(session, dataset_id=dataset_id)
    imports = repository.list_tasks_of(session, dataset_id=dataset_id, kind=DataTaskKind.IMPORT)
    if task_id is None:
        return imports[0] if imports else None
    for task in imports:
        if task.id == task_id:
            return task
    raise QuarantineNotFound(f"The dataset has no import '{task_id}'.")


def _count(task: DataTask, path: Path) -> dict[str, int]:
    """Count the rows by reason: the import counted them; for a failed one the index has the counts."""
    told = (task.result or {}).get("reasons")
    if isinstance(told, dict):
        return {str(code): int(count) for code, count in told.items()}
    return find_index(path).reasons


def _lines(path: Path, offset: int, limit: int) -> list[bytes]:
    # The beginning is read without an index, which for a huge file takes a while to make.
    start, skip = find_index(path).start_of(offset) if offset >= STEP else (0, offset)
    with path.open("rb") as file:
        file.seek(start)
        return list(islice(file, skip, skip + limit))


def _read_row(line: bytes) -> QuarantinedRow:
    found: dict[str, Any] = orjson.loads(line)
    return QuarantinedRow(
        source=found["source"],
        line=found["line"],
        row=found["row"],
        column=found["column"],
        code=found["code"],
        reason=found["message"],
        raw=found["raw"],
    )
