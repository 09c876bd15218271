"""The table of models."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, event
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class Model(SQLModel, table=True):
    """One set of weights. ``path`` and the facts after it are None until the weights are here."""

    __tablename__ = "models"
    __table_args__ = (
        Index("ix_models_parent", "parent_model_id", "created_at"),
        Index("ix_models_source", "source_job_id", "source_step"),
    )

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    description: str = Field(default="", max_length=2000)
    state: str = Field(max_length=16, index=True)
    state_reason: str | None = Field(default=None, max_length=2000)
    #: A ``ModelCause``; None where only the reason tells.
    state_cause: str | None = Field(default=None, max_length=32)
    #: When the state last changed; a fetch that was lost is recognised by it.
    state_changed_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    #: Of a fetch that is under way: ``FetchProgress``.
    progress: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)
    source: dict[str, Any] = Field(sa_type=JsonColumn)
    lineage: dict[str, Any] = Field(sa_type=JsonColumn)
    #: Of the lineage, what models are looked for by: see ``_copy_lineage``.
    parent_model_id: str | None = Field(default=None, max_length=32)
    source_job_id: str | None = Field(default=None, max_length=32)
    source_step: int | None = Field(default=None, sa_type=BigInteger)
    #: Relative to the data root.
    path: str | None = Field(default=None, max_length=1024)
    architecture: str | None = Field(default=None, max_length=120)
    parameter_count: int | None = Field(default=None, sa_type=BigInteger)
    dtype: str | None = Field(default=None, max_length=32)
    context_length: int | None = Field(default=None, sa_type=BigInteger)
    vocabulary_size: int | None = Field(default=None, sa_type=BigInteger)
    has_chat_template: bool | None = Field(default=None)
    size_bytes: int | None = Field(default=None, sa_type=BigInteger)
    sha256: str | None = Field(default=None, max_length=64)
    sha256_kind: str | None = Field(default=None, max_length=16)
    warnings: list[dict[str, Any]] = Field(sa_type=JsonColumn)
    revision: str | None = Field(default=None, max_length=120)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)


@event.listens_for(Model, "before_insert")
@event.listens_for(Model, "before_update")
def _copy_lineage(_mapper: object, _connection: object, model: Model) -> None:
    """Keep the columns that repeat the lineage equal to it; whoever writes a model need not know them."""
    model.parent_model_id = model.lineage.get("model_id")
    model.source_job_id = model.lineage.get("job_id")
    model.source_step = model.lineage.get("step")
