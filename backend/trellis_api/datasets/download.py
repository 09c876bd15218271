"""All rows of a split as a file that is made while it is sent."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from sqlmodel import Session
from trellis_data.json_rows import rows_as_json
from trellis_data.versions.version_rows import stream_rows

from trellis_api.core.settings import Settings
from trellis_api.datasets import service, versions
from trellis_api.datasets.store import open_store
from trellis_api.datasets.version_pages import reading

Form = Literal["jsonl", "csv", "parquet"]
MEDIA_TYPES: dict[Form, str] = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
_TABLE_ROWS = 2048


@dataclass(frozen=True)
class Download:
    """A file to be."""

    filename: str
    media_type: str
    content: Iterator[bytes]


def download(
    session: Session,
    settings: Settings,
    *,
    dataset_id: str,
    revision: str | None,
    split: str | None,
    form: Form,
) -> Download:
    """Prepare the download of a split's rows; nothing is read before the first piece is asked for."""
    dataset = service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=revision)
    name = versions.choose_split(version, split)
    with reading(dataset_id):
        store = open_store(settings)
        recorded = store.version(version.id)
        schema = store.tree(version.tree).arrow_schema
    tables = stream_rows(store, recorded, name, _TABLE_ROWS)
    filename = f"{dataset.name}-{name}-{version.id[:8]}.{form}"
    return Download(filename, MEDIA_TYPES[form], _WRITERS[form](tables, schema))


def disposition(filename: str) -> str:
    """Build ``Content-Disposition`` for any file name: ASCII for old clients, UTF-8 for the others."""
    safe = re.sub(r'[\x00-\x1f\x7f/\\:*?"<>|]', "_", filename).strip(". ") or "rows"
    plain = re.sub(r"[^ -~]", "_", safe)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(safe, safe='')}"


def _write_jsonl(tables: Iterator[pa.Table], _schema: pa.Schema) -> Iterator[bytes]:
    for table in tables:
        yield b"".join(_dump(row) + b"\n" for row in rows_as_json(table))


def _write_csv(tables: Iterator[pa.Table], schema: pa.Schema) -> Iterator[bytes]:
    """Write CSV: nested values and booleans as in JSON, and null as an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(schema.names)
    for table in tables:
        writer.writerows([_cell(row[name]) for name in schema.names] for row in rows_as_json(table))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _write_parquet(tables: Iterator[pa.Table], schema: pa.Schema) -> Iterator[bytes]:
    sink = _Pieces()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(schema))
            yield sink.take()
    yield sink.take()


class _Pieces(io.RawIOBase):
    """What is written, to be taken away piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._written += len(piece)
        return len(piece)

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return _dump(value).decode() if isinstance(value, dict | list | bool) else value


_WRITERS: dict[Form, Callable[[Iterator[pa.Table], pa.Schema], Iterator[bytes]]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "parquet": _write_parquet,
}
