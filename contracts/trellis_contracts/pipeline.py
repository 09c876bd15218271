"""A pipeline of data operators, as YAML, API and workers share it."""

from typing import Any

from pydantic import Field, field_validator

from trellis_contracts.recipe import DataFormat, Strict


class Step(Strict):
    """One operator and its parameters."""

    operator: str = Field(min_length=1, max_length=64)
    #: Shown in reports; by default the operator's id.
    name: str | None = Field(default=None, max_length=80)
    params: dict[str, Any] = Field(default_factory=dict)


class Pipeline(Strict):
    """Steps applied to rows, in order."""

    name: str = Field(min_length=1, max_length=120)
    description: str = Field(default="", max_length=2000)
    #: What the rows are; by default what is detected.
    format: DataFormat | None = None
    #: Columns by the role that they play, where their names do not say.
    columns: dict[str, str] = Field(default_factory=dict)
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    #: Model whose tokenizer counts tokens: an id on the platform, or a folder for the command line.
    tokenizer: str | None = None
    steps: list[Step] = Field(min_length=1, max_length=100)

    @field_validator("steps")
    @classmethod
    def _name_steps_apart(cls, steps: list[Step]) -> list[Step]:
        """Give every step a unique name, because reports and work folders are named by it."""
        taken: set[str] = set()
        for step in steps:
            wanted = step.name or step.operator
            name, number = wanted, 1
            while name in taken:
                number += 1
                name = f"{wanted} {number}"
            step.name = name
            taken.add(name)
        return steps
