"""Objects by the hash of their content: chunks of rows as Parquet, everything else as JSON.

A chunk's id hashes its columns and its rows' digests, not the Parquet file, which another release of
the library may write in other bytes. Beside each chunk lie its rows' digests, for comparing versions
without reading rows. Objects are never changed, and one that is there is whole.
"""

import hashlib
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis_data.atomic_files import sync
from trellis_data.versions.chunking import Chunk
from trellis_data.versions.hashing import DIGEST
from trellis_data.versions.records import StoreProblem

#: Few enough that a page of rows is read without decoding much else.
_GROUP_ROWS = 1024
ROWS, DIGESTS, DOCUMENT = ".parquet", ".rows", ".json"


class Objects:
    """The objects of a store."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "objects"
        self.unfinished = root / "unfinished"
        #: Folders whose entries a version relies on and a loss of power might still take.
        self._unsynced: set[Path] = set()
        #: Held while they are put on disk: whoever finds none left waits until they are.
        self._syncing = threading.Lock()

    def prepare(self) -> None:
        """Make the folders."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.unfinished.mkdir(exist_ok=True)

    def put_chunk(self, chunk: Chunk) -> str:
        """Store a chunk unless it is there; its id."""
        chunk_id = chunk_id_of(chunk.table.schema, chunk.digests)
        # Rows first; yet a loss of power may take the one rename and leave the other, so both are looked at.
        if not self.path(chunk_id, ROWS).exists():
            self._put(self.path(chunk_id, ROWS), lambda path: _write_rows(path, chunk.table))
        if not self.path(chunk_id, DIGESTS).exists():
            self._put(self.path(chunk_id, DIGESTS), lambda path: _write_bytes(path, chunk.digests.tobytes()))
        self._unsynced.add(self.path(chunk_id, ROWS).parent)
        return chunk_id

    def put_document(self, value: Any) -> str:
        """Store a JSON value unless it is there; its id."""
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
        document_id = hashlib.sha256(text).hexdigest()
        path = self.path(document_id, DOCUMENT)
        if not path.exists():
            self._put(path, lambda place: _write_bytes(place, text))
        self._unsynced.add(path.parent)
        return document_id

    def sync(self) -> None:
        """Flush everything that was stored to disk, before anything refers to it."""
        with self._syncing:
            while self._unsynced:
                sync(self._unsynced.pop())

    def document(self, document_id: str) -> Any:
        """Read a JSON value; raise ``StoreProblem`` if it is missing or damaged."""
        text = self._read(document_id, DOCUMENT)
        if hashlib.sha256(text).hexdigest() != document_id:
            raise StoreProblem("object_damaged", f"The object {document_id} is not what was stored.")
        return json.loads(text)

    def digests(self, chunk_id: str) -> np.ndarray:
        """Read the digests of a chunk's rows."""
        return np.frombuffer(self._read(chunk_id, DIGESTS), dtype=DIGEST)

    def rows(self, chunk_id: str) -> pq.ParquetFile:
        """Open a chunk's rows."""
        try:
            return pq.ParquetFile(self.path(chunk_id, ROWS))
        except FileNotFoundError:
            raise _missing(chunk_id) from None
        except pa.ArrowInvalid as error:
            raise StoreProblem("object_damaged", f"The chunk {chunk_id} cannot be read: {error}") from error

    def path(self, object_id: str, suffix: str) -> Path:
        """Return the path of an object."""
        return self._folder / object_id[:2] / f"{object_id[2:]}{suffix}"

    def all(self) -> Iterator[tuple[str, Path]]:
        """Yield every file of every object with the object's id; digests come before their rows."""
        for folder in sorted(self._folder.iterdir()):
            for path in sorted(folder.iterdir(), key=lambda path: (path.stem, path.suffix != DIGESTS)):
                yield folder.name + path.stem, path

    def _put(self, path: Path, write: Callable[[Path], None]) -> None:
        if not path.parent.exists():
            path.parent.mkdir(exist_ok=True)
            self._unsynced.add(self._folder)
        unfinished = self.unfinished / uuid.uuid4().hex
        write(unfinished)
        sync(unfinished)
        os.replace(unfinished, path)

    def _read(self, object_id: str, suffix: str) -> bytes:
        try:
            return self.path(object_id, suffix).read_bytes()
        except FileNotFoundError:
            raise _missing(object_id) from None


def chunk_id_of(schema: pa.Schema, digests: np.ndarray) -> str:
    """Compute the id of rows with these columns and digests; the order of columns does not matter."""
    columns = sorted((field.name, str(field.type)) for field in schema)
    head = json.dumps(["trellis chunk 1", columns], ensure_ascii=False, separators=(",", ":")).encode()
    return hashlib.sha256(head + b"\n" + digests.tobytes()).hexdigest()


def _missing(object_id: str) -> StoreProblem:
    return StoreProblem("object_missing", f"The store lacks the object {object_id}; verify it.")


def _write_rows(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, compression="zstd", row_group_size=_GROUP_ROWS)


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
