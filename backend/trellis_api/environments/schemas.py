"""Environments as clients ask for them and see them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, computed_field
from trellis_contracts.agents import ToolSchema
from trellis_contracts.environments import EnvironmentKind, EnvironmentState, ToolCallState
from trellis_contracts.parameter_schema import describe_environment_kind

from trellis_api.core.choices import Choices
from trellis_api.core.references import NamedReference
from trellis_api.core.texts import NO_NUL, Name, storable_tree

#: Of the arguments of a call, as JSON.
MAX_ARGUMENT_CHARACTERS = 20_000


def _check_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    if storable_tree(arguments) != arguments:
        raise ValueError("contains characters or numbers that can't be stored")
    if len(str(arguments)) > MAX_ARGUMENT_CHARACTERS:
        raise ValueError(f"is longer than {MAX_ARGUMENT_CHARACTERS} characters")
    return arguments


class EnvironmentKindRead(EnvironmentKind):
    """An environment kind with the schema of its parameters."""

    @computed_field(description="JSON Schema (2020-12) of `parameters`, with texts in both languages.")
    def params_schema(self) -> dict[str, Any]:
        return describe_environment_kind(self)


class EnvironmentKindList(BaseModel):
    """All environment kinds."""

    items: list[EnvironmentKindRead]


class EnvironmentCreate(BaseModel):
    """An environment to create."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    kind: Annotated[str, StringConstraints(max_length=64, pattern=NO_NUL)]
    parameters: Choices = Field(default_factory=dict, description="Of the kind; others have their defaults.")


class EnvironmentDataset(BaseModel):
    """Rows of an environment, as a dataset of the platform."""

    name: str = Field(description="Within the environment; empty for its main rows.")
    dataset: NamedReference
    splits: dict[str, int] = Field(description="Rows by split; empty until they have arrived.")


class EnvironmentRead(BaseModel):
    """An environment."""

    id: str
    name: str
    kind: str
    parameters: dict[str, Any]
    state: EnvironmentState
    phase: Literal["files", "rows"] | None = Field(
        description="While it is created: writing files, or importing rows as datasets."
    )
    reason: str | None = Field(description="Why it could not be created, in one sentence.")
    cause: str | None = Field(description="Code of that reason.")
    attempt: int = Field(description="Number of attempts by workers.")
    counts: dict[str, int] = Field(description="What is in it, by name.")
    tools: list[ToolSchema]
    datasets: list[EnvironmentDataset]
    sha256: str | None = Field(description="Hash of its files: the same parameters give the same hash.")
    size_bytes: int
    used_by: list[str] = Field(description="Names of active jobs that use it.")
    can_call: bool
    can_retry: bool
    can_delete: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ToolCallCreate(BaseModel):
    """A tool to test."""

    model_config = ConfigDict(extra="forbid")

    tool: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]
    arguments: Annotated[dict[str, Any], AfterValidator(_check_arguments)] = Field(default_factory=dict)


class ToolCallRead(BaseModel):
    """A test call and the tool response that the model would see."""

    id: str
    environment: str
    tool: str
    arguments: dict[str, Any]
    state: ToolCallState
    result: Any = Field(description="Null until it has succeeded.")
    result_count: int | None = Field(description="Rows or items of the result.")
    error: str | None = Field(description="Error code of the tool, e.g. DENIED or TIMEOUT.")
    ends_episode: bool = Field(description="This call would have ended an episode.")
    duration_s: float | None = Field(description="Of the tool itself.")
    reason: str | None = Field(description="Why the call failed.")
    cause: str | None
    created_at: datetime
    finished_at: datetime | None
