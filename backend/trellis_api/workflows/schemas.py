"""Workflow files as clients see them."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from trellis_contracts.workflow_states import WorkflowState

from trellis_api.code_files.schemas import Code, CodeFileRead
from trellis_api.core.references import NamedReference
from trellis_api.core.texts import Name


class WorkflowCreate(BaseModel):
    """A Python file with `async def workflow(task, model)`, which returns the reward, or a package."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    code: Code | None = Field(
        default=None, description="Its functions are checked on upload; it only runs in a job's sandbox."
    )
    upload: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None,
        description="Instead of `code`, the id of an upload: a zip or tar archive with `workflow.py`, "
        "further files and perhaps a `requirements.txt`, which a worker installs.",
    )
    function: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,119}$")] | None = Field(
        default=None, description="Name of the workflow; default workflow, or the only async function."
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.code is None) == (self.upload is None):
            raise ValueError("give either code or upload")
        return self


class WorkflowRead(CodeFileRead):
    """An uploaded workflow, without its code."""

    function: str
    state: WorkflowState = Field(description="`ready` can be trained; requirements are installed before.")
    reason: str | None = Field(description="Why its requirements could not be installed.")
    files: dict[str, int] | None = Field(description="Of a package: its files with their sizes in bytes.")
    requirements: list[str] | None = Field(description="Of a package: lines of its requirements.txt.")
    installed: list[str] | None = Field(description="What was installed for it, as name-version.")


class WorkflowListed(WorkflowRead):
    """An uploaded workflow, and what it is used by."""

    job_count: int = Field(description="Jobs that trained it, finished ones included.")
    jobs: list[NamedReference] = Field(description="The newest of them.")
    used_by: list[str] = Field(
        description="Unfinished jobs and running pipelines; it cannot be deleted while there are any."
    )


class WorkflowDetail(WorkflowRead):
    """An uploaded workflow."""

    code: str = Field(description="Of a package: that of its workflow.py.")
