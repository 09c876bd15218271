"""Request and response schemas of transfers."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from trellis_api.cards.schemas import MAX_CARD_CHARACTERS
from trellis_api.core.texts import NO_NUL
from trellis_api.models.schemas import HubName


class TransferKind(StrEnum):
    """The kind of transfer."""

    PUSH = "push"
    GGUF = "gguf"


class TransferState(StrEnum):
    """State of a transfer."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


TRANSFER_FINISHED = frozenset({TransferState.SUCCEEDED, TransferState.FAILED, TransferState.CANCELLED})


class GgufType(StrEnum):
    """Weight format of a GGUF file."""

    F16 = "f16"
    Q8_0 = "q8_0"
    Q4_K_M = "q4_k_m"


class PushCreate(BaseModel):
    """Push a model with its card to a repository of a Hugging Face hub, or of ModelScope.

    The address and the token are those of the workers (``HF_ENDPOINT`` and ``HF_TOKEN``, or
    ``MODELSCOPE_ENDPOINT`` and ``MODELSCOPE_API_TOKEN``): neither is part of a request, nor kept.
    """

    model_config = ConfigDict(extra="forbid")

    hub: HubName = Field(default="huggingface", description="Which hub: Hugging Face or ModelScope.")

    repo_id: Annotated[
        str,
        StringConstraints(
            max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$"
        ),
    ] = Field(description="owner/name; created if it doesn't exist.")
    revision: Annotated[str, StringConstraints(max_length=120, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")] = (
        Field(
            default="main",
            description="Branch; created if it doesn't exist. ModelScope only has master, its default.",
        )
    )
    private: bool = Field(default=True, description="Whether a new repository is private.")
    message: Annotated[str, StringConstraints(max_length=200, pattern=NO_NUL)] = Field(
        default="", description="Commit message; default: the model's name."
    )
    card: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_CARD_CHARACTERS,
        description="Your edited card, the README.md; 409 if its numbers are outdated. Default: a new one.",
    )

    @model_validator(mode="after")
    def _check_branch(self) -> Self:
        if self.hub == "modelscope":
            if "revision" in self.model_fields_set and self.revision not in {"main", "master"}:
                raise ValueError("pushes to ModelScope go to the branch master: leave 'revision' out")
            self.revision = "master"
        return self


class GgufCreate(BaseModel):
    """Export a model to a GGUF file."""

    model_config = ConfigDict(extra="forbid")

    type: GgufType = Field(
        default=GgufType.Q8_0,
        description="f16 uses 16 bits per weight, q8_0 about 8.5, q4_k_m about 5.",
    )


class TransferProgress(BaseModel):
    """Progress of a transfer."""

    done_bytes: int = Field(ge=0, description="Bytes sent or written.")
    total_bytes: int | None = Field(default=None, ge=0, description="Total bytes, if known.")
    file: str | None = Field(default=None, description="Current file.")


class TransferResult(BaseModel):
    """Result of a successful transfer."""

    url: str | None = Field(default=None, description="For pushes: page of the repository's revision.")
    commit: str | None = Field(default=None, description="For pushes: commit ID.")
    file: str | None = Field(default=None, description="For exports: file name.")
    size_bytes: int | None = Field(default=None, description="Size of the exported or pushed files.")
    sha256: str | None = Field(default=None, description="SHA-256 of the exported file.")


class TransferRead(BaseModel):
    """A transfer."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    kind: TransferKind
    state: TransferState
    model_id: str
    model_name: str
    request: dict[str, Any] = Field(
        description="Requested settings, without the card of a push: see has_own_card."
    )
    progress: TransferProgress | None
    result: TransferResult | None
    reason: str | None = Field(description="Why it failed.")
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    can_cancel: bool = False
    can_resume: bool = False
    has_own_card: bool = Field(default=False, description="For pushes: whether the request has a card.")
    has_file: bool = Field(default=False, description="Whether GET /transfers/{id}/file is available.")
