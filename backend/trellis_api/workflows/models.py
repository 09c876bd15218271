"""The table of workflow files."""

from datetime import datetime

from sqlmodel import Field
from trellis_contracts.workflow_states import WorkflowState

from trellis_api.code_files.models import CodeFile
from trellis_api.core.columns import JsonColumn, UtcDateTime


class WorkflowFile(CodeFile, table=True):
    """A person's own agent: a file, or a package whose ``code`` is that of its entry."""

    __tablename__ = "workflow_files"

    #: Name of the function that runs the agent.
    function: str = Field(max_length=120)
    #: Of a package, its files with their sizes; None for a single file.
    files: dict[str, int] | None = Field(default=None, sa_type=JsonColumn)
    #: Lines of its ``requirements.txt``.
    requirements: list[str] | None = Field(default=None, sa_type=JsonColumn)
    state: str = Field(default=WorkflowState.READY, max_length=16)
    #: Why the requirements could not be installed.
    reason: str | None = Field(default=None, max_length=2000)
    #: What was installed for it, as ``name-version``; the folder is named by the hash of the requirements.
    installed: list[str] | None = Field(default=None, sa_type=JsonColumn)
    #: Last sign of life of the worker that installs them.
    touched_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
