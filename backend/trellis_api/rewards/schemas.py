"""Rewards as clients see them."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, computed_field
from trellis_contracts.dry_run import MAX_ROWS, DryRunProgress, DryRunResult, DryRunState
from trellis_contracts.parameter_schema import describe_reward
from trellis_contracts.rewards import RewardKind, RewardTerm

from trellis_api.code_files.schemas import Code, CodeFileRead
from trellis_api.core.redaction import has_secret
from trellis_api.core.references import NamedReference
from trellis_api.core.texts import NO_NUL, Name, storable_tree
from trellis_api.jobs.schemas import RevisionText


def _check_rewards(rewards: list[RewardTerm]) -> list[RewardTerm]:
    """Refuse what can't be stored and what must not be: everybody who sees the dry run reads it."""
    plain: list[Any] = [term.model_dump() for term in rewards]
    if storable_tree(plain) != plain:
        raise ValueError("holds characters that cannot be kept")
    if has_secret(plain):
        raise ValueError("holds what looks like a token or password; set it up as a judge's endpoint")
    return rewards


class RewardKindRead(RewardKind):
    """A reward with the schema of its options."""

    @computed_field(description="JSON Schema (2020-12) of a term's `options`, with texts in both languages.")
    def params_schema(self) -> dict[str, Any]:
        return describe_reward(self)


class RewardKindList(BaseModel):
    """All rewards for mixtures."""

    items: list[RewardKindRead]


class RewardFileCreate(BaseModel):
    """A Python file with `score(prompt, response, answer, row) -> float | dict`."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    code: Code = Field(
        description="Syntax is checked on upload; it only runs sandboxed, in a job or dry run."
    )


class RewardFileRead(CodeFileRead):
    """An uploaded file, without its code."""


class RewardFileDetail(RewardFileRead):
    """An uploaded file."""

    code: str


class DryRunCreate(BaseModel):
    """Rewards to test on dataset rows before a run."""

    model_config = ConfigDict(extra="forbid")

    rewards: Annotated[list[RewardTerm], AfterValidator(_check_rewards)] = Field(min_length=1, max_length=8)
    dataset: str = Field(description="ID or name of a dataset.")
    dataset_version: RevisionText | None = Field(
        default=None, description="Version, branch or tag; default the tip of main, as it is now."
    )
    dataset_split: RevisionText | None = Field(default=None, description="Default train, or the only one.")
    columns: dict[
        Annotated[str, StringConstraints(max_length=64, pattern=NO_NUL)],
        Annotated[str, StringConstraints(max_length=256, pattern=NO_NUL)],
    ] = Field(default_factory=dict, max_length=32, description="Role → column, where names are unusual.")
    rows: int = Field(default=64, ge=1, le=MAX_ROWS, description="How many rows are drawn.")
    seed: int = Field(default=1, ge=0, lt=2**31)
    job: str | None = Field(default=None, description="Score the recorded responses of this job too.")
    step: int | None = Field(default=None, ge=0, lt=2**31, description="Of that job; default the newest.")


class DryRunRead(BaseModel):
    """A dry run."""

    id: str
    state: DryRunState
    progress: DryRunProgress = Field(description="Counted in scored responses.")
    rewards: list[RewardTerm] = Field(description="With defaults filled in.")
    dataset: NamedReference
    dataset_version: str | None = Field(description="The version whose rows are scored.")
    dataset_split: str | None
    columns: dict[str, str]
    rows: int
    seed: int
    job: str | None
    step: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reason: str | None = Field(description="Why it failed.")
    cause: str | None = Field(description="Code of a known cause, e.g. time_limit.")
    can_cancel: bool
    result: DryRunResult | None
