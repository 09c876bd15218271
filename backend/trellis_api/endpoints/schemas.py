"""Request and response schemas of endpoints."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from trellis_api.core.references import NamedReference
from trellis_api.jobs.schemas import Failure

MAX_IDLE_S = 7 * 24 * 3600


class EndpointState(StrEnum):
    """The state of an endpoint."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


IdleTimeout = Annotated[
    float | None,
    Field(
        ge=10,
        le=MAX_IDLE_S,
        description="Stop after this time without requests; null: TRELLIS_ENDPOINT_IDLE_S.",
    ),
]


class EndpointStart(BaseModel):
    """Options for serving a model or checkpoint."""

    model_config = ConfigDict(extra="forbid")

    idle_timeout_s: IdleTimeout = None
    max_model_len: int | None = Field(
        default=None,
        ge=16,
        le=2**24,
        description="Max prompt plus answer tokens; null: as many as fit.",
    )
    preemptible: bool | None = Field(
        default=None,
        description="False: never stop it to make room for training jobs or other endpoints "
        "(TRELLIS_ENDPOINT_PREEMPTION); null: unchanged, at first true.",
    )


class EndpointUpdate(BaseModel):
    """Options of an endpoint that take effect at once, whether it is loaded or not."""

    model_config = ConfigDict(extra="forbid")

    idle_timeout_s: IdleTimeout = None
    preemptible: bool = Field(
        default=True,
        description="False: never stop it to make room for training jobs or other endpoints "
        "(TRELLIS_ENDPOINT_PREEMPTION).",
    )


class SharingRefusal(BaseModel):
    """Why an adapter isn't served by its base model's engine."""

    reason: str = Field(description="The engine's words.")
    retry_at: datetime = Field(
        description="The next start after this time tries the base model's engine again; so does one after "
        "that engine restarted, the adapter's files changed, or TRELLIS_ENDPOINT_MAX_ADAPTERS changed."
    )


class EndpointLoad(BaseModel):
    """An engine's load, over the last `window_s` seconds where it is over a time."""

    measured_at: datetime = Field(description="Not measured again while nothing happens.")
    running: int = Field(description="Requests being answered.")
    waiting: int = Field(description="Requests in the engine's queue.")
    kv_use: float = Field(description="Share of the KV cache in use, 0 to 1.")
    window_s: float
    requests: int = Field(description="Requests answered in the window.")
    prompt_tokens_per_s: float
    generated_tokens_per_s: float
    first_token_mean_s: float | None = Field(description="Mean time to first token; null without any.")
    first_token_p95_s: float | None = Field(
        description="95th percentile of the time to first token, interpolated in the engine's histogram."
    )


RequestOutcome = Literal["answered", "refused", "not_ready", "stopped", "timed_out", "lost", "broken_off"]


class EndpointRequests(BaseModel):
    """How requests to an endpoint ended, also as `trellis_endpoint_requests` in `/metrics`."""

    since: datetime = Field(description="When the API started.")
    answered: int = 0
    refused: int = Field(default=0, description="The request was wrong, or the engine couldn't take it.")
    not_ready: int = Field(default=0, description="The model wasn't loaded in time, or couldn't be.")
    stopped: int = Field(default=0, description="The endpoint was stopped before the response was finished.")
    timed_out: int = Field(default=0, description="The engine sent nothing for too long.")
    lost: int = Field(default=0, description="The engine exited or failed.")
    broken_off: int = Field(default=0, description="The client left first.")


class EndpointRead(BaseModel):
    """An endpoint and its state."""

    id: str
    name: str = Field(description="Value of `model` in /v1 requests: the model's name, or `job_...:200`.")
    kind: Literal["model", "checkpoint"]
    model: NamedReference | None = Field(description="The model, or the base model of the job.")
    job: NamedReference | None = Field(description="The job that saved the checkpoint.")
    step: int | None
    run_id: str = Field(description="The job that runs the endpoint, with its log and events.")
    attempt: int
    shares_engine_of: NamedReference | None = Field(
        description="The base model whose engine serves this adapter; null if it has its own engine."
    )
    sharing_refusal: SharingRefusal | None = Field(
        description="Set if the base model's engine couldn't load this adapter, so it has its own engine."
    )
    state: EndpointState
    phase: str | None = Field(description="Start-up phase; null while queued.")
    state_since: datetime = Field(description="When it entered this state.")
    queue_position: int | None
    slots: int = Field(description="0 on a CPU, where endpoints share the cores.")
    max_model_len: int | None = Field(description="Max prompt plus answer tokens; set once it is ready.")
    idle_timeout_s: float
    stops_at: datetime | None = Field(
        description="When it stops if idle; null unless ready, and while adapters use its engine."
    )
    last_used_at: datetime | None
    load: EndpointLoad | None = Field(
        description="Null unless ready, until first measured, and for adapters in their base model's engine."
    )
    requests: EndpointRequests
    preemptible: bool = Field(
        description="Whether it may be stopped to make room for training jobs, or if idle for other "
        "endpoints (TRELLIS_ENDPOINT_PREEMPTION)."
    )
    preempted_by: NamedReference | None = Field(
        description="The training job (`job_...`) or endpoint (`ep_...`) that it makes or made room for; "
        "null if it stopped for another reason."
    )
    stopped_by: Literal["idle", "request", "training", "endpoint", "replaced"] | None = Field(
        description="Why it stopped, if it did; `training`, `endpoint`: to make room for `preempted_by`; "
        "`replaced`: its engine took the weights of a newer checkpoint of the job."
    )
    failure: Failure | None
    created_at: datetime
    can_start: bool
    can_stop: bool
