"""The time of a job's steps, and its machines, as clients see them."""

from datetime import datetime

from pydantic import BaseModel, Field

from trellis_api.monitoring.schemas import NodeSamples


class AttemptSpan(BaseModel):
    """When an attempt ran."""

    number: int
    started_at: datetime | None
    finished_at: datetime | None = Field(description="Null while it runs.")
    first_step: int | None = Field(description="The first step that it reported and that still counts.")


class StepTimes(BaseModel):
    """When steps were measured, in columns; of a long run every nth step."""

    steps: list[int]
    at: list[datetime]
    attempts: list[int] = Field(description="The attempt that ran each step.")


class JobSystemRead(BaseModel):
    """What the nodes measured while a job ran."""

    since: datetime | None = Field(description="Null before the first attempt has begun.")
    until: datetime | None
    stretch_s: float | None = Field(description="Seconds that one entry of the columns stands for.")
    nodes: list[NodeSamples] = Field(description="All nodes of the platform; samples are kept a week.")
    attempts: list[AttemptSpan]
    step_times: StepTimes = Field(description="Empty where they were not recorded.")
