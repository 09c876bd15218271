"""What /v1 answers of its own; answers of engines pass through as they are."""

from typing import Literal

from pydantic import BaseModel, Field


class ModelCard(BaseModel):
    """A model that requests can use."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(
        description="Unix time: of the model or checkpoint; for an alias, when it last moved."
    )
    owned_by: Literal["trellis"] = "trellis"


class ModelList(BaseModel):
    """A list of models."""

    object: Literal["list"] = "list"
    data: list[ModelCard]
    has_more: bool = Field(description="Whether there are more: ask again with `after` as `last_id`.")
    last_id: str | None = Field(description="The last model of this page; null for an empty list.")


class PromptPiece(BaseModel):
    """A piece of a rendered prompt."""

    text: str
    is_special: bool = Field(description="One of the tokens added to the vocabulary, e.g. `<|im_start|>`.")


class RenderedPrompt(BaseModel):
    """The prompt that a model gets for a chat request, or a text, as tokens."""

    count: int = Field(description="Number of tokens.")
    max_model_len: int = Field(description="Context length of the endpoint: prompt and response together.")
    tokens: list[int]
    pieces: list[PromptPiece] = Field(description="The rendered text, cut at special tokens.")
