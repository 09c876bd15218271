"""Uploads as clients see them."""

from datetime import datetime

from pydantic import BaseModel, Field


class UploadRead(BaseModel):
    """An upload."""

    id: str
    filename: str
    size_bytes: int
    received_bytes: int
    is_complete: bool = Field(description="The upload is complete.")
    sha256: str | None = Field(
        description="Of the whole file, when its last byte arrives. Where the platform was restarted "
        "meanwhile it is null until an import has read the file."
    )
    created_at: datetime
    expires_at: datetime = Field(description="When it expires unless a dataset was created from it.")
