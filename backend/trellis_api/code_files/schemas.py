"""Uploaded code as clients send and see it."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from trellis_api.core.texts import NO_NUL

MAX_CODE_BYTES = 256 * 1024


def _check_size(code: str) -> str:
    if len(code.encode("utf-8", "replace")) > MAX_CODE_BYTES:
        raise ValueError(f"is larger than {MAX_CODE_BYTES} bytes")
    return code


Code = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_CODE_BYTES, pattern=NO_NUL),
    AfterValidator(_check_size),
]


class CodeFileRead(BaseModel):
    """An uploaded file, without its code."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    sha256: str
    size_bytes: int
    created_at: datetime
