"""Endpoints as clients ask for them and see them."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trellis_api.jobs.schemas import Failure, NamedReference

MAX_IDLE_S = 7 * 24 * 3600


class EndpointState(StrEnum):
    """Where an endpoint is in its life."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class EndpointStart(BaseModel):
    """How a model or checkpoint shall be served."""

    model_config = ConfigDict(extra="forbid")

    idle_timeout_s: float | None = Field(
        default=None,
        ge=10,
        le=MAX_IDLE_S,
        description="Time without a request after which it stops; null: TRELLIS_ENDPOINT_IDLE_S.",
    )
    max_model_len: int | None = Field(
        default=None,
        ge=16,
        le=2**24,
        description="Tokens of prompt and answer together; null: as many as fit.",
    )


class EndpointRead(BaseModel):
    """An endpoint as it stands."""

    id: str
    name: str = Field(description="The `model` of requests to /v1: the model's name, or `job_...:200`.")
    kind: Literal["model", "checkpoint"]
    model: NamedReference | None = Field(description="The model, or the one that the job started from.")
    job: NamedReference | None = Field(description="The training that the checkpoint is of.")
    step: int | None
    run_id: str = Field(description="The job that carries it out: its log and event stream.")
    attempt: int
    shares_engine_of: NamedReference | None = Field(
        description="The base model whose engine serves this adapter; null for one with its own engine."
    )
    state: EndpointState
    phase: str | None = Field(description="What a starting one is doing: null while it waits for room.")
    state_since: datetime = Field(description="Since when it starts, is ready, or has ended.")
    queue_position: int | None
    slots: int = Field(description="0 on a CPU, where it shares the cores.")
    max_model_len: int | None = Field(description="Tokens of prompt and answer together, once it is ready.")
    idle_timeout_s: float
    stops_at: datetime | None = Field(
        description="When it stops if nobody uses it; null unless ready, and for an engine that adapters use."
    )
    last_used_at: datetime | None
    stopped_by: Literal["idle", "request"] | None = Field(description="Why it has stopped, where it has.")
    failure: Failure | None
    created_at: datetime
    can_start: bool
    can_stop: bool
