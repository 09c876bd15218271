"""Workflow files as clients see them."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from trellis_api.core.texts import NO_NUL, Name

MAX_CODE_BYTES = 256 * 1024


def _check_code(code: str) -> str:
    if len(code.encode("utf-8", "replace")) > MAX_CODE_BYTES:
        raise ValueError(f"is larger than {MAX_CODE_BYTES} bytes")
    return code


class WorkflowCreate(BaseModel):
    """A Python file with `async def workflow(task, model)`, which returns the reward."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    code: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_CODE_BYTES, pattern=NO_NUL),
        AfterValidator(_check_code),
    ] = Field(description="Checked for its functions here; run only in the sandbox of a job.")
    function: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,119}$")] | None = Field(
        default=None, description="Name of the workflow; default workflow, or the only async function."
    )


class WorkflowRead(BaseModel):
    """An uploaded workflow, without its code."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    function: str
    sha256: str
    size_bytes: int
    created_at: datetime


class WorkflowDetail(WorkflowRead):
    """An uploaded workflow."""

    code: str
