"""What the endpoints of the queue take and give."""

from pydantic import BaseModel, ConfigDict, Field

from trellis_api.jobs.forecast_schemas import StartForecast
from trellis_api.jobs.schemas import JobRead


class QueuedJob(BaseModel):
    """A queued job and its estimated start."""

    job: JobRead
    start: StartForecast | None = Field(
        description="Null for a job without slots and for one that isn't a training."
    )


class JobQueue(BaseModel):
    """Queued jobs in launch order."""

    items: list[QueuedJob]
    total: int = Field(description="Number of queued jobs, also of those that aren't listed.")
    used_slots: int
    total_slots: int


class QueueMove(BaseModel):
    """New place of a queued job."""

    model_config = ConfigDict(extra="forbid")

    before: str | None = Field(
        default=None, max_length=64, description="Id of the job to place it before; null: behind all others."
    )
