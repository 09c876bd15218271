"""Request and response schemas of the registry."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from trellis_api.core.texts import NO_NUL
from trellis_api.core.texts import Name as ModelName

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
#: An alias begins with a letter: what is all digits is a version.
ALIAS_PATTERN = r"^[A-Za-z][A-Za-z0-9._-]*$"
Note = Annotated[str, StringConstraints(max_length=2000, pattern=NO_NUL)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=NAME_PATTERN)]


class VersionCreate(BaseModel):
    """A model to add as the next version of a name."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Created with the first version.")
    model: ModelName = Field(description="ID (mdl_...) or name.")
    note: Note = ""


class Gate(BaseModel):
    """Only promote if the version isn't worse than the alias' current one (paired test, 5% level)."""

    model_config = ConfigDict(extra="forbid")

    benchmark: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=NO_NUL)] = Field(
        description="Benchmark label; both versions need an evaluation with the same settings, e.g. gsm8k."
    )


class PromotionCreate(BaseModel):
    """Point an alias at a version."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**31 - 1)
    note: Note = ""
    gate: Gate | None = None


class AliasRollBack(BaseModel):
    """Move an alias back to its previous version."""

    model_config = ConfigDict(extra="forbid")

    note: Note = ""


class GateResult(BaseModel):
    """Result of the gate."""

    benchmark: str
    metric: str
    value: float = Field(description="Score of the promoted version.")
    against: float = Field(description="Score of the alias' current version.")
    difference: float
    p_value: float | None
    pairs: int
    evaluation: str
    against_evaluation: str


class NamedVersionRead(BaseModel):
    """A version."""

    number: int
    model: str
    model_name: str
    exists: bool = Field(description="False if the model was deleted.")
    aliases: list[str]
    note: str
    created_at: datetime


class NamedModelRead(BaseModel):
    """A name with its versions, newest first."""

    name: str
    aliases: dict[str, int] = Field(description="Alias → version; /v1 requests can use `name:alias`.")
    versions: list[NamedVersionRead]
    created_at: datetime


class NamedModelList(BaseModel):
    """A list of named models."""

    items: list[NamedModelRead]


class PromotionRead(BaseModel):
    """A promotion or rollback."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    alias: str
    from_version: int | None
    to_version: int
    kind: Literal["promote", "rollback"]
    note: str
    gate: GateResult | None
    created_at: datetime


class PromotionHistory(BaseModel):
    """A list of promotions and rollbacks, newest first."""

    items: list[PromotionRead]
