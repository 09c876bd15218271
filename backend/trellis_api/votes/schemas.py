"""Request and response schemas of votes."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from trellis_api.core.texts import NO_NUL, Description, Name

#: Characters of a text: more than any context holds is no prompt.
_MAX_TEXT = 200_000
#: Characters of all messages and both answers together: lists read many votes at once.
_MAX_TEXTS = 400_000
Text = Annotated[str, StringConstraints(max_length=_MAX_TEXT, pattern=NO_NUL)]
StopText = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=NO_NUL)]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]


class VoteVerdict(StrEnum):
    """Which of the two is better."""

    A = "a"
    B = "b"
    TIE = "tie"
    NEITHER = "neither"


class VoteMessage(BaseModel):
    """A turn of the shared conversation."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant"]
    content: Text


class VoteAnswer(BaseModel):
    """A model's response."""

    model_config = ConfigDict(extra="forbid")

    model: ModelName = Field(
        description="The `model` of the response, or the name used in the request: an alias and `latest` "
        "are stored as what they mean when the vote arrives."
    )
    text: Text


class VoteSettings(BaseModel):
    """Shared request settings."""

    model_config = ConfigDict(extra="forbid")

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=2**31 - 1)
    seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    stop: list[StopText] | None = Field(default=None, max_length=16)
    top_k: int | None = Field(default=None, ge=1, le=2**31 - 1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)


class VoteCreate(BaseModel):
    """A vote on two responses to the same messages."""

    model_config = ConfigDict(extra="forbid")

    messages: Annotated[list[VoteMessage], Field(min_length=1, max_length=200)] = Field(
        description="The conversation before the responses; the last turn is the user's."
    )
    a: VoteAnswer
    b: VoteAnswer
    verdict: VoteVerdict
    is_blind: bool = Field(default=False, description="Whether the models were hidden from the voter.")
    settings: VoteSettings = VoteSettings()

    @model_validator(mode="after")
    def _ends_with_the_user(self) -> Self:
        if self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's")
        return self

    @model_validator(mode="after")
    def _is_not_too_long(self) -> Self:
        texts = [*(each.content for each in self.messages), self.a.text, self.b.text]
        length = sum(map(len, texts))
        if length > _MAX_TEXTS:
            raise ValueError(
                f"messages and answers together may have at most {_MAX_TEXTS:,} characters, not {length:,}"
            )
        return self


class VoteRead(BaseModel):
    """A vote. Model a is the one whose name comes first alphabetically."""

    id: str
    voter: str
    messages: list[VoteMessage]
    a: VoteAnswer
    b: VoteAnswer
    verdict: VoteVerdict
    is_blind: bool
    settings: VoteSettings
    created_at: datetime


class WinRate(BaseModel):
    """Win rate between two models."""

    model_a: str
    model_b: str
    wins_a: int
    wins_b: int
    ties: int = Field(description="Votes for both good (tie) or both bad (neither).")
    votes: int
    win_rate: float | None = Field(description="Share of decisive votes for a; null if there are none.")
    low: float | None = Field(description="Lower bound of the 95% CI (Wilson).")
    high: float | None = Field(description="Upper bound of the 95% CI.")


class WinRates(BaseModel):
    """Win rates of all pairs of models with votes, most votes first."""

    items: list[WinRate]


class VoteFilter(BaseModel):
    """Filters for votes."""

    model_config = ConfigDict(extra="forbid")

    models: Annotated[list[ModelName], Field(max_length=2)] = Field(
        default=[], description="Votes on this model, or between these two (names or IDs); empty: all."
    )
    blind_only: bool = False


class VoteDatasetCreate(VoteFilter):
    """A preference dataset created from votes."""

    name: Name
    description: Description = ""
