"""The table of workflow files."""

from datetime import datetime

from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class WorkflowFile(SQLModel, table=True):
    """A person's own agent as a Python file; its code never changes."""

    __tablename__ = "workflow_files"

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    code: str
    sha256: str = Field(max_length=64)
    size_bytes: int
    #: Name of the function that runs the agent.
    function: str = Field(max_length=120)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
