"""An alarm as clients read it."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field
from trellis_contracts.recipe import Text

Severity = Literal["warning", "critical"]


class AlarmRead(BaseModel):
    """Something is visibly wrong with a run; the run goes on."""

    code: str = Field(description="loss_not_finite, kl_exploding, stalled ...")
    severity: Severity
    attempt: int
    metric: str | None = Field(description="The metric in which it was seen, under the engine's name.")
    step: int = Field(description="Step at which it was raised, the last time.")
    first_step: int = Field(description="Step at which it was seen first.")
    last_step: int = Field(description="Step at which it was seen last.")
    value: float | None = Field(description="What was seen last; null where it is not a finite number.")
    threshold: float | None = Field(description="The bound that it crossed, where there is one number.")
    example_id: int | None = Field(
        description="Id of a sampled response that shows it, for alarms about what is written."
    )
    is_active: bool = Field(description="False when it has cleared, or its attempt was replaced.")
    title: Text
    advice: Text = Field(description="What to try.")
    raised_at: datetime
    cleared_at: datetime | None
