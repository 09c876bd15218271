"""Datasets as clients see them."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from trellis_contracts.recipe import DataFormat

from trellis_api.datasets.intake.kinds import FileKind


class ColumnRead(BaseModel):
    """One column and its type."""

    name: str
    type: str = Field(description="text, integer, number, boolean, list<text>, object{role: text} ...")


class DatasetWarning(BaseModel):
    """Something that does not stop training but is worth a look."""

    code: str = Field(description="empty_values or format_unknown.")
    message: str
    column: str | None = None
    row_count: int | None = Field(default=None, description="Rows concerned.")


class DatasetRead(BaseModel):
    """A stored dataset."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    description: str
    format: DataFormat
    format_reason: str = Field(description="One sentence: what the format was recognised by.")
    format_columns: dict[str, str] = Field(
        description="The columns that play the format's roles, e.g. prompt: question, answer: answer."
    )
    row_count: int
    columns: list[ColumnRead]
    warnings: list[DatasetWarning]
    size_bytes: int = Field(description="Size of the stored Parquet file.")
    sha256: str = Field(description="Hash of the stored Parquet file.")
    source_filename: str
    source_kind: FileKind
    source_encoding: str | None = Field(description="Text encoding of the upload; null for Parquet.")
    source_size_bytes: int
    source_sha256: str = Field(description="Hash of the file as uploaded.")
    created_at: datetime


class DatasetRows(BaseModel):
    """A window of rows, in the order of the file."""

    offset: int
    row_count: int = Field(description="Rows in the whole dataset.")
    columns: list[ColumnRead]
    rows: list[dict[str, Any]]
