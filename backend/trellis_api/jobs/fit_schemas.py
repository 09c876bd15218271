"""How a dataset suits a recipe, as clients see it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from trellis_contracts.recipe import DataFormat, Text


class MissingRole(BaseModel):
    """A part that no column plays."""

    role: str = Field(description="prompt, answer, messages, chosen ...")
    looked_for: list[str] = Field(description="Columns that would have played it.")
    reason: Text


class DataConversion(BaseModel):
    """How the rows are brought into the form that the recipe trains on."""

    model_config = ConfigDict(populate_by_name=True)

    source: DataFormat = Field(alias="from")
    to: DataFormat
    columns: dict[str, str] = Field(description="Role → column.")
    how: Text


class DataOffer(BaseModel):
    """Another way to read the dataset; send both values with the job to take it."""

    format: DataFormat
    columns: dict[str, str] = Field(description="Role → column.")
    label: Text


class DataSample(BaseModel):
    """The first row of the dataset, and what the trainer gets of it. Long texts are cut."""

    before: dict[str, Any]
    after: list[dict[str, Any]] = Field(description="More than one where a row becomes several.")
    problem: str | None = Field(description="Why the row cannot be converted; `after` is then empty.")


class DataFit(BaseModel):
    """Whether the dataset suits the recipe, and what can be done where it does not."""

    wanted: DataFormat = Field(description="The form that the recipe trains on.")
    found: DataFormat = Field(description="The format that the dataset was recognised as.")
    read_as: DataFormat = Field(description="The format as which its rows would be read.")
    columns: dict[str, str] = Field(description="The columns that play the roles of that format.")
    fits: bool
    missing: list[MissingRole]
    conversion: DataConversion | None = Field(description="Null where the rows are in the wanted form.")
    offers: list[DataOffer] = Field(description="Other ways to read it, the likeliest first.")
    sample: DataSample | None = Field(description="Null where the file cannot be read.")
