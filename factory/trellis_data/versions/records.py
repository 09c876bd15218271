"""What a store keeps besides rows: commits, the trees they point at, where a version came from."""

import base64
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import Field
from trellis_contracts.recipe import DataFormat, Strict

from trellis_data.layout import Layout


class StoreProblem(Exception):
    """A version cannot be read or written; says what to do."""

    def __init__(self, code: str, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        #: The part of what was asked that does not fit, where it is one: ``conditions.2.value``.
        self.field = field


class ChunkRef(NamedTuple):
    """A chunk of a split."""

    id: str
    rows: int


class Split(Strict):
    """The rows of a split, in order."""

    rows: int
    #: Of the rows as JSON, whatever they take on disk.
    size_bytes: int
    chunks: list[ChunkRef]


class Column(Strict):
    """A column for people; ``Tree.arrow_schema`` is exact."""

    name: str
    type: str


class Tree(Strict):
    """All rows of a version, and what they are."""

    columns: list[Column]
    #: The Arrow schema as IPC message, base64.
    schema_ipc: str
    format: DataFormat
    #: Columns by the role that they play.
    roles: dict[str, str] = Field(default_factory=dict)
    splits: dict[str, Split]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns with their types."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema_ipc)))

    @property
    def layout(self) -> Layout:
        """What the columns mean."""
        return Layout(self.format, self.roles)

    @property
    def rows(self) -> int:
        """Rows of all splits."""
        return sum(split.rows for split in self.splits.values())


class SourceFile(Strict):
    """A file that rows were read from."""

    name: str
    sha256: str
    size_bytes: int


class Provenance(Strict):
    """Where a version came from."""

    #: Files or addresses of an import.
    files: list[SourceFile] = Field(default_factory=list)
    address: str | None = None
    #: The pipeline that made the rows, as YAML, and the version that they were made of.
    pipeline: str | None = None
    pipeline_hash: str | None = None
    inputs: list[str] = Field(default_factory=list)
    #: What else is known, such as counts of a run.
    notes: dict[str, Any] = Field(default_factory=dict)


class Commit(Strict):
    """A version: rows, and how they came about."""

    parents: list[str] = Field(default_factory=list)
    message: str = Field(min_length=1, max_length=10_000)
    author: str = Field(min_length=1, max_length=200)
    #: ISO 8601 with offset.
    time: str
    tree: str
    #: Rows of each split, so that a history can be listed without reading trees.
    rows: dict[str, int]
    #: Document with the statistics, if there are any.
    statistics: str | None = None
    provenance: Provenance = Field(default_factory=Provenance)


class Version(NamedTuple):
    """A commit and its id."""

    id: str
    commit: Commit


def encode_schema(schema: pa.Schema) -> str:
    """Encode the schema for ``Tree.schema_ipc``."""
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()
