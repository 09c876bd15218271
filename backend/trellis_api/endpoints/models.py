"""The table of endpoints."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import JSON, BigInteger, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now

#: Without a request for so long, an endpoint counts as idle for those who would have its engine or its room.
IDLE_AFTER = timedelta(seconds=60)


class Endpoint(SQLModel, table=True):
    """One model or checkpoint that was ever served; its state is that of its job, started anew as needed."""

    __tablename__ = "endpoints"
    __table_args__ = (
        Index("ix_endpoints_newest", "created_at", "id"),
        Index("ix_endpoints_model", "target_model_id", unique=True),
        Index("ix_endpoints_checkpoint", "target_job_id", "target_step", unique=True),
    )

    id: str = Field(primary_key=True, max_length=32)
    #: The job that carries it out: its own, or that of the endpoint whose engine it shares.
    job_id: str = Field(foreign_key="jobs.id", ondelete="CASCADE", index=True)
    #: The endpoint of the base model, whose engine serves this adapter; None: an engine of its own. Of whole
    #: weights: the endpoint whose engine is to take them (``takeover.py``).
    engine_id: str | None = Field(default=None, max_length=32, index=True)
    #: The request that the engine load the adapter: which it is, of which attempt, and since when. A later
    #: request has another identity, so an answer settles only what it answers. None: it shall not be loaded.
    load_id: str | None = Field(default=None, max_length=32)
    asked_attempt: int | None = None
    asked_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: What the latest request was about: the adapter's files and the limits (``adapters.Adapter.digest``).
    asked_with: str | None = Field(default=None, max_length=64)
    #: Why the engine of the base model can't serve the adapter, which has its own as long as this holds
    #: (``sharing.is_refused``); when it was refused, and by which run of that engine.
    refusal: str | None = Field(default=None, max_length=500)
    refused_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    refused_by: str | None = Field(default=None, max_length=64)
    #: When it last left a running engine, and why: "idle" or "request".
    unloaded_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    unloaded_for: str | None = Field(default=None, max_length=16)
    #: Of one with its own engine: adapters up to this rank can be loaded into it; None: none can.
    max_lora_rank: int | None = None
    #: Of one with its own engine: whether a newer checkpoint can take that over.
    is_replaceable: bool = False
    #: By which requests name it: the model's name, or "job_...:200".
    name: str = Field(max_length=200)
    #: The model that is served; None for a checkpoint.
    target_model_id: str | None = Field(default=None, max_length=32)
    target_job_id: str | None = Field(default=None, max_length=32)
    target_step: int | None = Field(default=None, sa_type=BigInteger)
    #: As it was asked for; None: the platform's setting.
    idle_timeout_s: float | None = None
    #: Tokens of prompt and answer together, as asked for; None: as many as fit.
    max_model_len: int | None = Field(default=None, sa_type=BigInteger)

    #: Whether it may be stopped to make room for a job; False: it was marked to be kept.
    is_preemptible: bool = True
    #: The training, or the endpoint, that it was last stopped for.
    preempted_by: str | None = Field(default=None, max_length=32)

    #: Where the engine of one attempt answers, and since when.
    ready_attempt: int | None = None
    host: str | None = Field(default=None, max_length=64)
    port: int | None = None
    context_length: int | None = Field(default=None, sa_type=BigInteger)
    #: Why requests with tools are refused; None: they are not.
    tool_problem: str | None = Field(default=None, max_length=32)
    ready_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: What the engine last said that it is at (``schemas.EndpointLoad``); None until it has.
    load: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    #: Last sign of a request, also while one is under way.
    last_used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)

    @property
    def is_takeover(self) -> bool:
        """Whether the engine that it refers to is to take its weights, or was until it was stopped."""
        return self.engine_id is not None and self.asked_with is None
