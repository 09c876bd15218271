"""Gives the parameters of a stored pipeline the names that they have now."""

from contextlib import suppress

from trellis_contracts.pipeline import Pipeline, Step
from trellis_contracts.renamed import use_new_names

from trellis_data.catalogue import operators


def use_present_names(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with present parameter names; a step with both names stays as it is."""
    return pipeline.model_copy(update={"steps": [_rename(step) for step in pipeline.steps]})


def _rename(step: Step) -> Step:
    operator = operators().get(step.operator)
    with suppress(ValueError):  # both names with different values: the check of the pipeline says so
        if operator is not None:
            old_names = operator.Params.old_names
            params = use_new_names(step.params, old_names, of=f"operator {step.operator}")
            return step.model_copy(update={"params": params})
    return step
