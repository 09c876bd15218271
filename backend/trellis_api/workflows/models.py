"""The table of workflow files."""

from sqlmodel import Field

from trellis_api.code_files.models import CodeFile


class WorkflowFile(CodeFile, table=True):
    """A person's own agent."""

    __tablename__ = "workflow_files"

    #: Name of the function that runs the agent.
    function: str = Field(max_length=120)
