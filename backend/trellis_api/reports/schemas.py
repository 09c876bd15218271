"""Reports as clients ask for them and see them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from trellis_api.core.ids import id_pattern
from trellis_api.core.references import NamedReference
from trellis_api.core.texts import Name

ReportFormat = Literal["md", "html", "pdf"]
Language = Literal["en", "zh"]
EvaluationId = Annotated[str, StringConstraints(max_length=32, pattern=id_pattern("ev"))]


class ReportState(StrEnum):
    """State of the files."""

    PENDING = "pending"
    WRITING = "writing"
    READY = "ready"
    FAILED = "failed"


class ReportCreate(BaseModel):
    """Create a report on evaluations."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    evaluations: list[EvaluationId] = Field(min_length=1, max_length=20, description="Finished ones.")
    language: Language = "en"
    formats: list[ReportFormat] = Field(default=["md", "html", "pdf"], min_length=1, max_length=3)
    samples: int = Field(default=5, ge=0, le=50, description="Examples shown of each benchmark.")


class ReportFile(BaseModel):
    """One file of a report."""

    format: ReportFormat
    size_bytes: int


class ReportProblem(BaseModel):
    """A format that could not be created; the others are available."""

    format: ReportFormat
    code: str = Field(description="chromium_missing, pdf_failed ...")
    message: str


class ReportRead(BaseModel):
    """A report."""

    id: str
    name: str
    language: Language
    evaluations: list[NamedReference] = Field(description="Names are null where they were deleted since.")
    formats: list[ReportFormat]
    samples: int
    state: ReportState
    state_reason: str | None = Field(description="Why writing failed.")
    files: list[ReportFile]
    problems: list[ReportProblem] = Field(description="Formats that are missing, and why.")
    can_retry: bool
    created_at: datetime
