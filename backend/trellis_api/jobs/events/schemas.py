"""What the event stream of a job says: the data of each kind of event."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field
from trellis_contracts.states import JobState

from trellis_api.jobs.alarms.schemas import AlarmRead
from trellis_api.jobs.schemas import LogLineRead


class StateChanged(BaseModel):
    """The job is in another state, or in the same state for another reason: read it again for the actions."""

    state: JobState
    attempt: int
    reason: str | None = None


class ProgressMade(BaseModel):
    """Progress of the run."""

    phase: str | None
    step: int
    total_steps: int | None
    eta_s: float | None


class MetricsReported(BaseModel):
    """The metrics of one step."""

    step: int
    values: dict[str, float | None] = Field(description="Null where the value is not a finite number.")
    non_finite: dict[str, Literal["nan", "inf", "-inf"]] = Field(default_factory=dict)


class LogsPrinted(BaseModel):
    """New lines of output."""

    lines: list[LogLineRead]


class CheckpointSaved(BaseModel):
    """A checkpoint is complete."""

    step: int
    has_hf: bool
    size_bytes: int


class RolloutsSampled(BaseModel):
    """Responses of a step can be read."""

    step: int
    split: Literal["train", "validation", "probe"]
    count: int


class ManifestWritten(BaseModel):
    """The manifest of an attempt can be read."""

    attempt: int


class StreamReset(BaseModel):
    """The requested position does not exist: reload everything and continue from here."""

    at: datetime


class StreamEvents(BaseModel):
    """The event names of the stream, each with the type of its data. `id` is the position to resume from."""

    state: StateChanged
    progress: ProgressMade
    metrics: MetricsReported
    logs: LogsPrinted
    checkpoint: CheckpointSaved
    rollouts: RolloutsSampled
    manifest: ManifestWritten
    alarm: AlarmRead
    reset: StreamReset
