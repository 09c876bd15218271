"""What a preview tells of time, start and disk."""

from typing import Literal

from pydantic import BaseModel, Field

from trellis_api.core.pricing import Cost


class TimeForecast(BaseModel):
    """Estimated duration, and what it is based on."""

    basis: Literal["similar_runs", "scaled_runs", "arithmetic"] = Field(
        description="similar_runs: measured runs of the recipe with a model this size. scaled_runs: those of "
        "the nearest model, times the ratio of parameters. arithmetic: the operations of a step at the speed "
        "of this machine, without start-up."
    )
    seconds: float = Field(description="From launch to the last step.")
    low_s: float = Field(description="At the fastest speed of the runs, or of the machine.")
    high_s: float
    step_s: float
    rows_per_s: float = Field(description="Rows, or responses, that a step works on.")
    slot_hours: float = Field(description="Hours times slots: GPU-hours on a GPU platform.")
    cost: Cost | None = Field(description="Of the slot-hours; null where the owner set no price.")
    runs: list[str] = Field(description="Ids of the jobs that it was computed from.")
    is_same_data: bool = Field(description="All of them trained on this dataset; otherwise on others.")
    scaled_from_parameters: int | None = Field(
        default=None, description="Parameters of the model that scaled runs trained."
    )
    step_flops: float | None = Field(
        default=None, description="Arithmetic: floating-point operations of a step at full lengths."
    )
    machine_flops: float | None = Field(
        default=None,
        description="Arithmetic: operations per second that this machine reached multiplying matrices, times "
        "the job's share of its slots.",
    )


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
    time: TimeForecast | None = Field(description="Null if nothing comparable was measured.")
    start: StartForecast
    disk: DiskForecast | None
