"""Saved views as clients send and see them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from trellis_api.core.texts import Name

#: Printable and without blanks, as an address has it; charts are listed key by key.
Query = Annotated[str, StringConstraints(max_length=8000, pattern=r"^[\x21-\x7e]*$")]
Scope = Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z0-9_]*$")]


class SavedViewPage(StrEnum):
    """Pages whose views can be saved."""

    JOBS = "jobs"
    CHARTS = "charts"


class SavedViewCreate(BaseModel):
    """A view to save."""

    model_config = ConfigDict(extra="forbid")

    page: SavedViewPage
    scope: Scope = Field(default="", description="For charts: the recipe whose runs the view is for.")
    name: Name
    query: Query = Field(description="The page's query string, percent-encoded, without `?`.")


class SavedViewUpdate(BaseModel):
    """What changes of a saved view; fields that are left out stay."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    query: Query | None = None


class SavedViewRead(BaseModel):
    """A saved view."""

    id: str
    page: SavedViewPage
    scope: str
    name: str
    query: str
    created_by: str
    created_at: datetime
    updated_at: datetime


class SavedViewList(BaseModel):
    """The views of a page, by name."""

    items: list[SavedViewRead]
