"""How a dataset suits a recipe, as clients see it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from trellis_contracts.recipe import DataFormat, Text


class MissingRole(BaseModel):
    """A role without a column."""

    role: str = Field(description="prompt, answer, messages, chosen ...")
    looked_for: list[str] = Field(description="Columns that would match it.")
    reason: Text


class DataConversion(BaseModel):
    """How the rows are converted to the recipe's training format."""

    model_config = ConfigDict(populate_by_name=True)

    source: DataFormat = Field(alias="from")
    to: DataFormat
    columns: dict[str, str] = Field(description="Role → column.")
    how: Text


class DataOffer(BaseModel):
    """Another way to read the dataset; send both values with the job to use it."""

    format: DataFormat
    columns: dict[str, str] = Field(description="Role → column.")
    label: Text


class DataSample(BaseModel):
    """The first row of the dataset and its converted form. Long texts are truncated."""

    before: dict[str, Any]
    after: list[dict[str, Any]] = Field(description="More than one where a row becomes several.")
    problem: str | None = Field(description="Why the row cannot be converted; `after` is then empty.")


class DataFit(BaseModel):
    """Whether the dataset fits the recipe, and how to fix it if not."""

    wanted: DataFormat = Field(description="The recipe's training format.")
    found: DataFormat = Field(description="The detected format of the dataset.")
    read_as: DataFormat = Field(description="The format used to read its rows.")
    columns: dict[str, str] = Field(description="The columns mapped to that format's roles.")
    fits: bool
    missing: list[MissingRole]
    conversion: DataConversion | None = Field(description="Null where the rows are in the wanted form.")
    offers: list[DataOffer] = Field(description="Other ways to read it, most likely first.")
    sample: DataSample | None = Field(description="Null where the file cannot be read.")
