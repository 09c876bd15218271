"""A stage of a pipeline's run."""

from dataclasses import dataclass

from trellis_data.pipeline.tasks import StepPlan


@dataclass(frozen=True)
class Stage:
    """Steps that a unit passes in one go."""

    number: int
    plans: tuple[StepPlan, ...]
    #: Position of the first step in the pipeline, from 0.
    first: int
    #: Whether the first step has to scan all rows before.
    is_global: bool
