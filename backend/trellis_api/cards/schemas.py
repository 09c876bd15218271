"""What a card states, number by number, and the check of one."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MAX_CARD_CHARACTERS = 512 * 1024
#: Of the facts that cards are written from; a card of an earlier one is compared in what that has.
FORMAT = 3
#: The first with curves, and the first that tells whole ones from thinned ones.
WITH_CURVES, WITH_WHOLE_CURVES = 2, 3


class CardCheck(BaseModel):
    """A card to check against the current facts."""

    model_config = ConfigDict(extra="forbid")

    card: str = Field(min_length=1, max_length=MAX_CARD_CHARACTERS, description="The whole text.")


class CardChecked(BaseModel):
    """The card is correct."""

    model_id: str
    statements: int = Field(description="Number of values compared.")


class Figure(BaseModel):
    """A metric of a training: its last value, and the best with its step."""

    key: str
    last: float | None
    last_step: int
    best: float | None
    best_step: int | None


class TrainingFacts(BaseModel):
    """One training on the way to the model."""

    job: str | None
    name: str | None
    recipe: str | None
    preset: str | None = None
    seed: int | None = None
    step: int | None
    base: str | None
    dataset: str | None
    dataset_name: str | None
    dataset_version: str | None
    dataset_split: str | None
    dataset_sha256: str | None
    #: Its name on Hugging Face, where it is from there.
    dataset_repository: str | None = None
    #: Empty where none is known.
    dataset_licences: list[str] = Field(default_factory=list)
    environment: str | None
    environment_sha256: str | None
    parameters: dict[str, Any] = Field(default_factory=dict)
    figure: Figure | None = None
    checkpoint_metrics: dict[str, float] = Field(default_factory=dict)
    #: The headline metric and the losses up to the step, a few points each: key, then step.
    curves: dict[str, dict[int, float | None]] = Field(default_factory=dict)
    #: Whether they have all points that were measured.
    has_whole_curves: bool = False
    manifest_attempt: int | None = None
    manifest_sha256: str | None = None


class ScoreFacts(BaseModel):
    """A score over all problems of a benchmark."""

    evaluation: str
    benchmark: str
    label: str
    #: Name of the dataset of the platform that it was measured on.
    dataset: str | None = None
    metric: str
    value: float
    low: float | None
    high: float | None
    method: str
    problems: int
    #: The model itself, or the checkpoint that it was made of.
    of: str


class CardFacts(BaseModel):
    """All that a card states. Numbers are rounded to what the card shows."""

    #: Cards that name none are of the first.
    format: int = 1
    model: str
    name: str
    weights_sha256: str | None
    weights_sha256_kind: str | None
    architecture: str | None
    parameters: int | None
    dtype: str | None
    context_length: int | None
    form: str | None
    base: str | None
    #: The nearest of the models that it was made of, the one it is included, that Hugging Face has.
    base_repository: str | None = None
    licence: str | None
    trainings: list[TrainingFacts]
    scores: list[ScoreFacts]
