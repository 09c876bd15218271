"""Fields of a job that a list shows beside its own columns: parameters, and metrics last, best or at a step.

A field is a dotted text, ``parameters.learning_rate`` or ``metrics.last.train/loss``, the same in the query,
in the answer, as an order of the list and in the address of the page. A page of jobs takes a fixed number
of queries, whatever its fields.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import StringConstraints
from sqlalchemy import and_, or_, select
from sqlmodel import Session, col
from trellis_contracts.recipe import Text
from trellis_recipes.catalogue import UnknownRecipe, get_recipe, list_recipes
from trellis_recipes.issues import nearest

from trellis_api.jobs.errors import UnknownField
from trellis_api.jobs.fields.schemas import FieldValue, JobFieldsRead, ParameterField
from trellis_api.jobs.metrics import headline
from trellis_api.jobs.metrics.direction import Mode, find_direction
from trellis_api.jobs.metrics.models import metric_points, metric_series
from trellis_api.jobs.models import TRAIN, Job
from trellis_api.jobs.resolved_params import map_resolved
from trellis_api.jobs.rollouts.store import finite

MAX_FIELDS = 16
#: Newest trainings whose parameters and metrics are offered, and how many metrics.
_LOOKED_AT, _MOST_METRICS = 200, 500
_PATTERN = r"^(?:parameters\.[a-z][a-z0-9_]{0,99}|metrics\.(?:last|best|at\.[0-9]{1,15})\.[^\x00]{1,256})$"
_PARTS = re.compile(
    r"parameters\.(?P<parameter>.+)|metrics\.(?:(?P<end>last|best)|at\.(?P<step>[0-9]+))\.(?P<key>.+)",
    re.DOTALL,
)
#: A field of a list, as it stands in a query.
FieldText = Annotated[str, StringConstraints(max_length=300, pattern=_PATTERN)]


@dataclass(frozen=True)
class JobField:
    """A parameter, or a metric with the point that is asked for: its last, its best, or that of a step."""

    text: str
    parameter: str | None = None
    key: str = ""
    end: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        """Return the field as it is written in a query."""
        return self.text


def parse_field(text: str) -> JobField:
    """Read the text of a field; raises ``UnknownField`` for a parameter that no recipe has."""
    match = _PARTS.fullmatch(text)
    if match is None:
        raise UnknownField(f"'{text}' is no field of a job.")
    if (name := match["parameter"]) is not None:
        if name not in list_parameter_types():
            suggestion = nearest(name, list_parameter_types())
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
            raise UnknownField(f"No recipe has a parameter '{name}'.{hint}", {"parameter": name})
        return JobField(text, parameter=name)
    step = None if match["step"] is None else int(match["step"])
    return JobField(text, key=match["key"], end=match["end"], step=step)


def parse_fields(texts: Iterable[str] | None) -> list[JobField]:
    """Read the fields that a query asks for, each once."""
    return [parse_field(each) for each in dict.fromkeys(texts or ())]


@cache
def list_parameter_types() -> dict[str, str]:
    """List every parameter of the recipes: "number" if it is numeric in one recipe, else "text"."""
    types: dict[str, str] = {}
    for recipe in list_recipes():
        for each in recipe.parameters:
            if each.type in ("int", "float", "bool"):
                types[each.name] = "number"
            elif each.type != "rewards":
                types.setdefault(each.name, "text")
    return types


def is_text(field: JobField) -> bool:
    """Tell whether jobs are sorted by this field as text."""
    return field.parameter is not None and list_parameter_types()[field.parameter] == "text"


def read_values(
    session: Session, *, jobs: Sequence[Job], fields: Sequence[JobField]
) -> dict[str, dict[str, FieldValue]]:
    """Read the values of some fields of each job, by its ID; null for what a job does not have."""
    values: dict[str, dict[str, FieldValue]] = {
        job.id: {str(field): None for field in fields} for job in jobs
    }
    trainings = [job for job in jobs if job.kind == TRAIN]
    if not fields or not trainings:
        return values
    parameters = {str(field): field.parameter for field in fields if field.parameter is not None}
    resolved = map_resolved(session, jobs=trainings) if parameters else {}
    for job in trainings if parameters else ():
        own = _keep_plain(job, resolved[job.id])
        values[job.id] |= {text: own.get(name) for text, name in parameters.items()}
    _add_summaries(session, trainings, [field for field in fields if field.end is not None], values)
    _add_points(session, trainings, [field for field in fields if field.step is not None], values)
    return values


def map_modes(job: Job, texts: Iterable[str]) -> dict[str, Mode]:
    """Map fields with a better direction to it: as the job says, else by the metric's name."""
    keys = {text: key for text in texts if (key := parse_field(text).key)}
    modes = {text: find_direction(key, jobs=[job]) for text, key in keys.items()}
    return {text: mode for text, mode in modes.items() if mode is not None}


def _keep_plain(job: Job, resolved: Mapping[str, Any] | None) -> dict[str, FieldValue]:
    """Return a run's parameters without lists; only the given ones if nothing else is known of them."""
    return {
        name: value
        for name, value in (job.params if resolved is None else resolved).items()
        if not isinstance(value, list | dict)
    }


def _add_summaries(
    session: Session,
    jobs: Sequence[Job],
    fields: Sequence[JobField],
    values: dict[str, dict[str, FieldValue]],
) -> None:
    if not fields:
        return
    connection = session.connection()
    found = headline.find_many(connection, jobs=jobs, keys={field.key for field in fields})
    summaries = headline.read_summaries(
        connection, [series for own in found.values() for series in own.values()]
    )
    for job_id, own in found.items():
        for field in fields:
            summary = summaries.get(own[field.key].id) if field.key in own else None
            if summary is not None:
                values[job_id][str(field)] = summary.last if field.end == "last" else summary.best


def _add_points(
    session: Session,
    jobs: Sequence[Job],
    fields: Sequence[JobField],
    values: dict[str, dict[str, FieldValue]],
) -> None:
    """Add the values that were measured at exactly a step: no neighboring value replaces it."""
    if not fields:
        return
    series, points = metric_series.c, metric_points.c
    is_asked = or_(*(and_(series.key == field.key, points.step == field.step) for field in fields))
    statement = (
        select(series.job_id, series.key, points.step, points.value)
        .join(metric_points, points.series_id == series.id)
        .where(series.job_id.in_([job.id for job in jobs]), is_asked)
    )
    texts: dict[tuple[str | None, int | None], list[str]] = {}
    for field in fields:  # a step may be spelt in more than one way
        texts.setdefault((field.key, field.step), []).append(str(field))
    for job_id, key, step, value in session.execute(statement):
        values[job_id].update(dict.fromkeys(texts[key, step], finite(value)))


def list_offered(session: Session) -> JobFieldsRead:
    """List parameters and metrics of the newest trainings, to choose columns from."""
    newest = (
        select(col(Job.id), col(Job.recipe))
        .where(col(Job.kind) == TRAIN)
        .order_by(col(Job.created_at).desc())
        .limit(_LOOKED_AT)
        .subquery()
    )
    keys = (
        select(metric_series.c.key)
        .where(metric_series.c.job_id.in_(select(newest.c.id)))
        .distinct()
        .order_by(metric_series.c.key)
        .limit(_MOST_METRICS)
    )
    recipes = session.scalars(select(newest.c.recipe).distinct())
    return JobFieldsRead(
        parameters=_list_parameters(recipes), metrics=list(session.scalars(keys)), max_fields=MAX_FIELDS
    )


def _list_parameters(recipes: Iterable[str]) -> list[ParameterField]:
    titles: dict[str, Text] = {}
    for recipe_id in sorted(recipes):
        try:
            recipe = get_recipe(recipe_id)
        except UnknownRecipe:
            continue
        for each in recipe.parameters:
            if each.name in list_parameter_types():
                titles.setdefault(each.name, each.title)
    return [ParameterField(name=name, title=title) for name, title in sorted(titles.items())]
