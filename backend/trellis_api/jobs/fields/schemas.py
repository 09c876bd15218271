"""What can be chosen as a column of the job list."""

from pydantic import BaseModel, Field
from trellis_contracts.recipe import Text

FieldValue = int | float | bool | str | None


class ParameterField(BaseModel):
    """A parameter, for `fields=parameters.NAME`."""

    name: str
    title: Text


class JobFieldsRead(BaseModel):
    """Parameters and metrics of recent trainings."""

    parameters: list[ParameterField]
    metrics: list[str] = Field(
        description="Keys for `fields=metrics.last.KEY`, `metrics.best.KEY` and `metrics.at.STEP.KEY`."
    )
    max_fields: int = Field(description="Maximum number of `fields` in one request.")
