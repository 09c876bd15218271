"""What the endpoints of the queue take and give."""

from pydantic import BaseModel, ConfigDict, Field

from trellis_api.endpoints.preemption import Outlook
from trellis_api.jobs.forecast.schemas import StartForecast
from trellis_api.jobs.schemas import JobRead


class BlockingEndpoint(BaseModel):
    """An endpoint that holds slots for which a training job waits."""

    id: str
    name: str
    slots: int
    outlook: Outlook = Field(
        description="`stopping`; `preemptible`: it will be stopped to make room if that frees enough slots; "
        "`busy`: it is loading or in use, and will be stopped once it is idle; `kept`: it was started with "
        "`preemptible: false`; `off`: TRELLIS_ENDPOINT_PREEMPTION is off."
    )


class QueuedJob(BaseModel):
    """A queued job and its estimated start."""

    job: JobRead
    start: StartForecast | None = Field(
        description="Null for a job without slots and for one that isn't a training."
    )
    blocking_endpoints: list[BlockingEndpoint] = Field(
        description="Endpoints whose slots it waits for; only of the first training job that doesn't fit."
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
