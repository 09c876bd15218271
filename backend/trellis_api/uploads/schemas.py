"""Uploads as clients see them."""

from datetime import datetime

from pydantic import BaseModel, Field


class UploadRead(BaseModel):
    """A file that is being uploaded, or was."""

    id: str
    filename: str
    size_bytes: int
    received_bytes: int
    is_complete: bool
    sha256: str | None = Field(description="Of the whole file, once it is complete and was checked.")
    created_at: datetime
    expires_at: datetime = Field(description="When it goes unless a dataset was made of it.")
