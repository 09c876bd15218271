"""What a preview tells of time, start and disk."""

from pydantic import BaseModel, Field

from trellis_api.core.pricing import Cost


class TimeForecast(BaseModel):
    """Estimated duration, based on comparable runs."""

    seconds: float = Field(description="From launch to the last step.")
    low_s: float = Field(description="At the fastest speed among them.")
    high_s: float
    step_s: float
    rows_per_s: float = Field(description="Rows, or responses, that a step works on.")
    slot_hours: float = Field(description="Hours times slots: GPU-hours on a GPU platform.")
    cost: Cost | None = Field(description="Of the slot-hours; null where the owner set no price.")
    runs: list[str] = Field(description="Ids of the jobs that it was computed from.")
    is_same_data: bool = Field(description="All of them trained on this dataset; otherwise on others.")


class StartForecast(BaseModel):
    """Estimated start of a launch."""

    seconds: float | None = Field(description="0: immediately; null if a job ahead has no estimate.")
    jobs_ahead: int
    unknown: str | None = Field(default=None, description="Name of the job without an estimate.")


class DiskForecast(BaseModel):
    """What a run will write."""

    checkpoint_bytes: int
    checkpoints: int | None = Field(description="Total size there; null if unknown.")
    total_bytes: int | None


class RunForecast(BaseModel):
    """Estimates before a launch."""

    steps: int | None
    time: TimeForecast | None = Field(description="Null without a comparable run.")
    start: StartForecast
    disk: DiskForecast | None
