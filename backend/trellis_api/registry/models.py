"""The tables of named models."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, String
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now

_NAME = 64


def _of_name() -> Any:
    """Return the foreign key of a column that is deleted with its named model."""
    return [ForeignKey("named_models.name", ondelete="CASCADE")]


class NamedModel(SQLModel, table=True):
    """A name under which versions follow each other."""

    __tablename__ = "named_models"

    name: str = Field(primary_key=True, max_length=_NAME)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class ModelVersion(SQLModel, table=True):
    """A model as the next version of a name: 1, 2, 3 ..."""

    __tablename__ = "model_versions"

    name: str = Field(sa_type=String(_NAME), sa_column_args=_of_name(), primary_key=True)
    number: int = Field(primary_key=True)
    model_id: str = Field(max_length=32, index=True)
    #: As it was called then: it may be deleted.
    model_name: str = Field(max_length=120)
    note: str = Field(default="", max_length=2000)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class ModelAlias(SQLModel, table=True):
    """A word for one of the versions."""

    __tablename__ = "model_aliases"

    name: str = Field(sa_type=String(_NAME), sa_column_args=_of_name(), primary_key=True)
    alias: str = Field(primary_key=True, max_length=_NAME)
    version: int
    moved_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class Promotion(SQLModel, table=True):
    """An alias came to stand on a version."""

    __tablename__ = "model_promotions"
    __table_args__ = (Index("ix_model_promotions_newest", "name", "id"),)

    id: int | None = Field(
        default=None, primary_key=True, sa_type=BigInteger().with_variant(Integer, "sqlite")
    )
    name: str = Field(sa_type=String(_NAME), sa_column_args=_of_name())
    alias: str = Field(max_length=_NAME)
    from_version: int | None = None
    to_version: int
    #: "promote" or "rollback".
    kind: str = Field(max_length=16)
    note: str = Field(default="", max_length=2000)
    #: A ``GateResult``, where a condition was made.
    gate: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
