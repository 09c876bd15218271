"""Workflow files as clients see them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from trellis_api.code_files.schemas import Code, CodeFileRead
from trellis_api.core.texts import Name
from trellis_api.jobs.schemas import NamedReference


class WorkflowCreate(BaseModel):
    """A Python file with `async def workflow(task, model)`, which returns the reward."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    code: Code = Field(description="Checked for its functions here; run only in the sandbox of a job.")
    function: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,119}$")] | None = Field(
        default=None, description="Name of the workflow; default workflow, or the only async function."
    )


class WorkflowRead(CodeFileRead):
    """An uploaded workflow, without its code."""

    function: str


class WorkflowListed(WorkflowRead):
    """An uploaded workflow, and what it is used by."""

    job_count: int = Field(description="Jobs that trained it, finished ones included.")
    jobs: list[NamedReference] = Field(description="The newest of them.")
    used_by: list[str] = Field(
        description="Unfinished jobs, and pipelines under way; it is not deleted while there are any."
    )


class WorkflowDetail(WorkflowRead):
    """An uploaded workflow."""

    code: str
