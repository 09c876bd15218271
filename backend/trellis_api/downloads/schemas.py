"""Files as clients see them."""

from pydantic import BaseModel, Field


class FileRead(BaseModel):
    """A file of a model or checkpoint."""

    name: str = Field(description="Relative to its folder; part of the address of its download.")
    size_bytes: int


class FilesRead(BaseModel):
    """All files, in the order of the archive."""

    items: list[FileRead]
    size_bytes: int
    archive_bytes: int = Field(description="Of the tar archive.")
