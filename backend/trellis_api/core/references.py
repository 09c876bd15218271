"""How a thing is named in what clients read of another one."""

from pydantic import BaseModel, Field


class NamedReference(BaseModel):
    """Another thing, by id and name."""

    id: str
    name: str | None = Field(description="Null where it was deleted.")
