"""The reference of a row: which calls are wanted, in which order, and what has to come of them."""

import json
from typing import Any, Literal, Self

from pydantic import Field, ValidationError
from trellis_contracts.recipe import Strict

TaskType = Literal["tool_selection", "multi_step_planning", "timing_decision", "tool_retrieval"]
#: A plan may take this many times the steps of the reference where the row sets no bound.
STEPS_FACTOR = 2


class BadTruth(ValueError):
    """The reference of a row cannot be read; the message says what is wrong with it."""


class Step(Strict):
    """One call of the reference."""

    name: str = Field(min_length=1)
    #: None where the reference says nothing of them: any will do.
    arguments: dict[str, Any] | None = None


class GroundTruth(Strict):
    """``reward_model.ground_truth`` of a row, as JSON text."""

    task_type: TaskType = "tool_selection"
    #: Calls in the order in which they are to be made; none where no tool should be called.
    steps: list[Step] = Field(default_factory=list)
    #: What the prose must hold, where that can be known without running a tool.
    answer: str | None = None
    #: What the simulator gives for the last step.
    result: str | None = None
    #: Calls that are needed; None: those of the steps. More where a step stands for several calls of a tool.
    optimal_steps: int | None = Field(default=None, ge=0)
    #: Calls that a plan may take; None: twice those of the reference.
    max_steps: int | None = Field(default=None, ge=0)
    #: Names of the tools that the model was told of; None where nobody knows them.
    available_tools: list[str] | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the JSON text of a row; ``BadTruth`` with a sentence where it is not one."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            reason = f"{place}: {first['msg']}" if place else first["msg"]
            raise BadTruth(f"the reference is not a valid tool-use ground truth ({reason})") from error

    def to_text(self) -> str:
        """Return the row's JSON text; the same object gives the same bytes."""
        unsaid = {"optimal_steps"} if self.optimal_steps is None else set()
        return json.dumps(self.model_dump(exclude=unsaid), ensure_ascii=False, sort_keys=True)

    @property
    def names(self) -> list[str]:
        """Tools of the steps, in order."""
        return [step.name for step in self.steps]

    @property
    def tools(self) -> frozenset[str]:
        """The tools that are to be used."""
        return frozenset(self.names)

    @property
    def needed_steps(self) -> int:
        """How many calls are enough."""
        return len(self.steps) if self.optimal_steps is None else self.optimal_steps

    @property
    def step_limit(self) -> int:
        """The most calls of a plan that counts as a success."""
        return STEPS_FACTOR * self.needed_steps if self.max_steps is None else self.max_steps
