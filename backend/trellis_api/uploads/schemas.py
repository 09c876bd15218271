"""Uploads as clients see them."""

from datetime import datetime

from pydantic import BaseModel, Field


class UploadRead(BaseModel):
    """A file that is being uploaded, or was."""

    id: str
    filename: str
    size_bytes: int
    received_bytes: int
    is_complete: bool = Field(description="All of it has arrived.")
    sha256: str | None = Field(
        description="Of the whole file, when its last byte arrives. Where the platform was restarted "
        "meanwhile it is null until an import has read the file."
    )
    created_at: datetime
    expires_at: datetime = Field(description="When it goes unless a dataset was made of it.")
