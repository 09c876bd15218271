"""What a preview tells of time, start and disk."""

from pydantic import BaseModel, Field


class TimeForecast(BaseModel):
    """How long a run will take, by measured runs that were alike."""

    seconds: float = Field(description="From launch to the last step.")
    low_s: float = Field(description="At the speed of the fastest of them.")
    high_s: float
    step_s: float
    rows_per_s: float = Field(description="Rows, or responses, that a step works on.")
    slot_hours: float = Field(description="Hours times slots: GPU-hours on a GPU platform.")
    runs: list[str] = Field(description="Ids of the jobs that it was computed from.")
    is_same_data: bool = Field(description="All of them trained on this dataset; otherwise on others.")


class StartForecast(BaseModel):
    """When a launch would begin."""

    seconds: float | None = Field(description="0: at once; null where a job ahead cannot be told.")
    jobs_ahead: int
    unknown: str | None = Field(default=None, description="Name of the job whose end cannot be told.")


class DiskForecast(BaseModel):
    """What a run will write."""

    checkpoint_bytes: int
    checkpoints: int | None = Field(description="That lie there together; null where that cannot be told.")
    total_bytes: int | None


class RunForecast(BaseModel):
    """Told before a launch."""

    steps: int | None
    time: TimeForecast | None = Field(description="Null: no run that was alike has been measured.")
    start: StartForecast
    disk: DiskForecast | None
