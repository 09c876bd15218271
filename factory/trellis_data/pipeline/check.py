"""Whether a pipeline can work on rows with these columns, before any row is read."""

import difflib

import pyarrow as pa
from pydantic import ValidationError
from trellis_contracts.pipeline import Pipeline, Step
from trellis_contracts.recipe import DataFormat, Strict
from trellis_contracts.row_formats import FORMAT_ROLES

from trellis_data.catalogue import operators
from trellis_data.layout import Layout
from trellis_data.operator import Context, Operator, OperatorProblem


class Problem(Strict):
    """Something in a pipeline that has to change."""

    #: None where it is about the pipeline as a whole.
    step: str | None
    #: Place in the pipeline's document, such as ``steps.2.params.threshold``.
    field: str
    code: str
    message: str


def check(
    pipeline: Pipeline, schema: pa.Schema, layout: Layout, context: Context | None = None
) -> list[Problem]:
    """List everything that is wrong with a pipeline, step by step; empty if it can run."""
    context = context or Context(seed=pipeline.seed)
    problems = [
        Problem(
            step=None,
            field=f"columns.{role}",
            code="column_missing",
            message=f"There is no column '{column}' for the role '{role}', only {_listed(schema.names)}.",
        )
        for role, column in layout.columns.items()
        if column not in schema.names
    ]
    for index, step in enumerate(pipeline.steps):
        found = _outline(step, index, context)
        if isinstance(found, list):
            problems += found
            continue
        try:
            found.check(schema, layout)
            schema, layout = found.schema_after(schema), found.layout_after(layout)
        except OperatorProblem as problem:
            problems.append(_problem(step, f"steps.{index}", problem.code, problem.message))
        except KeyError as missing:
            message = f"There is no column {missing}; there are {_listed(schema.names)}."
            problems.append(_problem(step, f"steps.{index}.params", "column_missing", message))
    return problems


def check_steps(pipeline: Pipeline, context: Context) -> list[Problem]:
    """List the problems that do not depend on the rows: unknown operators and invalid parameters."""
    found = (_outline(step, index, context) for index, step in enumerate(pipeline.steps))
    return [problem for each in found if isinstance(each, list) for problem in each]


def stated_layout(pipeline: Pipeline, schema: pa.Schema) -> Layout | None:
    """Return the layout that the pipeline itself states, or None if it must be detected."""
    if pipeline.format is None:
        return Layout(DataFormat.UNKNOWN, dict(pipeline.columns)) if pipeline.columns else None
    columns = dict(pipeline.columns)
    for role in FORMAT_ROLES[pipeline.format]:
        free = (name for name in role.usual_columns if name in schema.names and name not in columns.values())
        if role.name not in columns and (usual := next(free, None)):
            columns[role.name] = usual
    return Layout(pipeline.format, columns)


def _outline(step: Step, index: int, context: Context) -> Operator | list[Problem]:
    known = operators()
    if step.operator not in known:
        near = difflib.get_close_matches(step.operator, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; known are {_listed(list(known))}."
        message = f"There is no operator '{step.operator}'{hint}"
        return [_problem(step, f"steps.{index}.operator", "operator_unknown", message)]
    operator = known[step.operator]
    try:
        return operator.outline(operator.Params.model_validate(step.params), context)
    except ValidationError as error:
        return [
            _problem(
                step,
                ".".join(["steps", str(index), "params", *map(str, each["loc"])]),
                "param_unknown" if each["type"] == "extra_forbidden" else "param_invalid",
                each["msg"],
            )
            for each in error.errors()
        ]


def _problem(step: Step, field: str, code: str, message: str) -> Problem:
    return Problem(step=step.name, field=field, code=code, message=message)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:30]) + (", …" if len(names) > 30 else "")
