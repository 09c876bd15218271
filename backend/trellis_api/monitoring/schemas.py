"""The platform's state as clients see it."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, Field
from trellis_contracts.states import JobState
from trellis_contracts.supervision import SupervisedService

from trellis_api.core.pricing import SlotPriceRead
from trellis_api.core.references import NamedReference
from trellis_api.jobs.alarms.schemas import AlarmRead, Severity
from trellis_api.jobs.schemas import JobRead


class ComponentHealth(StrEnum):
    """The state of one part of the platform."""

    OK = "ok"
    #: Works, but something should be looked at.
    DEGRADED = "degraded"
    DOWN = "down"
    #: Not set up, so there is nothing to measure.
    NOT_CONFIGURED = "not_configured"
    #: The first measurement has not been made yet.
    UNKNOWN = "unknown"


class ComponentRead(BaseModel):
    """One part of the platform, as measured ``age_s`` ago."""

    name: str = Field(description="database, redis, workers, beat, ray, disk, supervisor.")
    health: ComponentHealth
    message: str = Field(description="One sentence: what was found.")
    latency_ms: float | None = Field(default=None, description="How long the measurement took.")
    age_s: float | None = Field(description="Time since the measurement; null before the first.")
    services: list[SupervisedService] = Field(
        default=[], description="For the supervisor: the services that it watches on this machine."
    )


class SlotsRead(BaseModel):
    """Slots that jobs share."""

    used: int
    total: int
    price: SlotPriceRead | None = Field(description="Null where the owner set no price.")


class GpuRead(BaseModel):
    """One NVIDIA device."""

    node: str | None = Field(
        default=None, description="Host of the device if reported by a Ray node; null for this machine."
    )
    index: int = Field(description="Number of the device on its node.")
    name: str
    utilization_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None = None


class ResourcesRead(BaseModel):
    """This machine, and the GPUs of the cluster; nulls before the first measurement."""

    cpu_percent: float | None
    cpu_count: int
    load_1m: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    disk_free_bytes: int | None = Field(description="Free where the data root lies.")
    disk_total_bytes: int | None
    gpus: list[GpuRead]
    age_s: float | None


class AlarmCount(BaseModel):
    """How many unfinished jobs have an alarm."""

    code: str
    severity: Severity
    jobs: int


class DashboardRead(BaseModel):
    """All data of the overview page."""

    health: ComponentHealth = Field(description="The worst state of all configured components.")
    time: datetime
    platform: str = Field(description="cpu or cuda.")
    jobs_by_state: dict[JobState, int]
    alarms: list[AlarmCount] = Field(description="Active alarms of unfinished jobs.")
    slots: SlotsRead
    running: list[JobRead] = Field(description="Jobs that hold slots.")
    queue: list[JobRead] = Field(description="The first queued jobs, in launch order.")
    recent_failures: list[JobRead] = Field(description="Failed and crashed jobs, the latest first.")
    dataset_count: int
    model_count: int
    components: list[ComponentRead]
    resources: ResourcesRead
    versions: dict[str, str] = Field(description="Installed versions of the packages that matter.")


class FinishedJob(BaseModel):
    """A training that has ended, and the job that it is a copy of."""

    job: JobRead = Field(description="With its headline metric in `metric`.")
    parent: JobRead | None = Field(description="Null for a job that is no copy, or of a deleted one.")


class ActiveAlarm(BaseModel):
    """An alarm of a job that has not ended."""

    job: NamedReference
    alarm: AlarmRead


class ActivityRead(BaseModel):
    """Latest results and what needs attention."""

    finished: list[FinishedJob] = Field(description="Succeeded and stopped trainings, the latest first.")
    alarms: list[ActiveAlarm] = Field(description="Critical ones first, then the newest; at most 20.")


class NodeSamples(BaseModel):
    """A node over time, in columns of equal length."""

    node: str
    at: list[datetime] = Field(description="Beginning of each stretch; one without any sample is left out.")
    figures: dict[str, list[float | None]] = Field(
        description="Means over each stretch, by name: `cpu_percent`, `memory_used_bytes`, "
        "`disk_used_bytes`, `disk_read_bytes_per_s`, `network_sent_bytes_per_s`, "
        "`gpu0_utilization_percent`, `gpu0_power_watts` …; null where it was not measured."
    )


class MachineHistory(BaseModel):
    """Node metrics over a time range."""

    since: datetime
    until: datetime
    stretch_s: float = Field(description="Seconds per entry.")
    nodes: list[NodeSamples]


class ProcessHistory(BaseModel):
    """A large process of a node over time."""

    node: str
    pid: int
    name: str
    job_id: str | None = Field(description="Its job, if its command line shows it.")
    job_name: str | None = Field(description="Null if the job was deleted.")
    started_at: datetime
    is_alive: bool = Field(description="Whether it existed at the node's last check.")
    memory_bytes: int = Field(description="Resident memory when it was seen last.")
    peak_bytes: int
    growth_bytes: int | None = Field(
        description="Median of the last third of the range minus that of the first; null below six samples."
    )
    growth_bytes_per_h: int | None = Field(description="That growth over the time between the two thirds.")
    is_growing: bool = Field(description="By more than a tenth and 100 MB.")
    at: list[datetime]
    memory: list[int] = Field(description="Resident bytes, once a minute; of a long range every nth look.")
