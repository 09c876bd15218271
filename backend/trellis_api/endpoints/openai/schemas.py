"""What /v1 answers of its own; answers of engines pass through as they are."""

from typing import Literal

from pydantic import BaseModel


class ModelCard(BaseModel):
    """A model that requests can use."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["trellis"] = "trellis"


class ModelList(BaseModel):
    """A list of models."""

    object: Literal["list"] = "list"
    data: list[ModelCard]
