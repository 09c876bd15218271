"""The time of a job's steps, and its machines, as clients see them."""

from datetime import datetime

from pydantic import BaseModel, Field
from trellis_contracts.events import EngineLoad, TimelineLane, TimelineResponse

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


class PhaseColumn(BaseModel):
    """One phase of the steps, over all of them."""

    phase: str = Field(description="Under the engine's name: gen, old_log_prob, update_actor …")
    group: str = Field(
        description="generation, scoring, log_probs, update, weight_sync, waiting, data, validation, "
        "checkpoint or other."
    )
    in_step: bool = Field(description="Whether it is part of a step; validations are not.")
    seconds: list[float] = Field(description="Mean over the steps of each stretch.")
    total_s: float = Field(description="Of all steps together.")
    share: float = Field(description="Of the time of all steps and of what is beside them, 0 to 1.")


class Bottleneck(BaseModel):
    """What limits a run, and the figures that say so."""

    group: str = Field(description="The group of phases that takes most of the time.")
    share: float = Field(description="Of the time that was measured, 0 to 1.")
    seconds: float = Field(description="Of a step, on average.")
    steps: int = Field(description="Steps that were measured.")
    phases: list[str] = Field(description="The phases of the group, the longest first.")
    longest_response: float | None = Field(
        description="Time of a step's longest response over that of its median one; null where unknown."
    )
    tail_share: float | None = Field(
        description="Of generation, what came after nine tenths of the responses; null where unknown."
    )
    queued_share: float | None = Field(
        description="Of the time in which rollout engines worked, the part with requests in their queue; "
        "null where unknown."
    )
    kv_cache_use: float | None = Field(
        description="The most of an engine's KV cache that was in use in a step, mean of all steps, 0 to 1; "
        "null where unknown."
    )
    workers_busy: float | None = Field(
        description="Of a step, the part in which the processes that hold the models were called, mean of "
        "the processes and of the steps whose spans were kept, 0 to 1; null where unknown."
    )
    engines_busy: float | None = Field(
        description="Of a step, the part in which rollout engines had requests, likewise; null where unknown."
    )


class TimingRead(BaseModel):
    """Where the time of a job's steps went."""

    first_steps: list[int] = Field(description="First step of each stretch of the columns.")
    last_steps: list[int]
    phases: list[PhaseColumn] = Field(description="Parts of a step in the order in which they run.")
    step_s: list[float] = Field(description="Whole step, mean over each stretch.")
    steps: int = Field(description="Steps that were measured.")
    bottleneck: Bottleneck | None = Field(description="Null where no step was measured.")
    timeline_steps: list[int] = Field(description="Steps whose spans were kept, for `/timeline`.")


class TimelineRead(BaseModel):
    """One step span by span. Seconds count from its beginning."""

    step: int
    attempt: int
    started_at: datetime
    duration_s: float
    lanes: list[TimelineLane] = Field(
        description="One for each process: `trainer` or `rank N`, which run the loop, and those that it "
        "calls: `worker N` (holds the models), `engine N` (a rollout engine), `agent_loop N`, `reward N`. "
        "Between its spans nothing was measured."
    )
    lane_count: int = Field(default=0, description="Processes that were measured; of many, some are kept.")
    groups: dict[str, str] = Field(
        default_factory=dict,
        description="What each phase of the lanes and parts belongs to, as in `/timing`.",
    )
    responses: list[TimelineResponse] = Field(
        description="Of many, the longest and some of the others. Parts: `queued` (sent, not begun), "
        "`generate`, `request` (both, where they can't be told apart), `tool`, `reward`."
    )
    response_count: int
    engines: list[EngineLoad] = Field(
        default_factory=list,
        description="Requests and KV cache of rollout engines; empty where not measured.",
    )
