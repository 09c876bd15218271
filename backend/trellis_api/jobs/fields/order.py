"""Fields of jobs as SQL expressions, to sort a list by them."""

from collections import defaultdict
from typing import Any

from sqlalchemy import ColumnElement, Float, String, and_, case, cast, func, literal, null, select, union_all
from sqlmodel import col
from trellis_contracts.recipe import Recipe
from trellis_recipes.catalogue import list_recipes

from trellis_api.jobs.fields.service import JobField, is_text
from trellis_api.jobs.metrics.direction import suit_mode
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups, metric_series
from trellis_api.jobs.models import TRAIN, Job, JobConfiguration

_LARGEST = 1.7976931348623157e308


def express(field: JobField, *, dialect: str) -> ColumnElement[Any]:
    """Build the SQL expression of a field's value for each job; NULL if it has none."""
    if field.parameter is not None:
        return _parameter(field.parameter, is_word=is_text(field), dialect=dialect)
    if field.step is not None:
        return value_at(field.key, field.step)
    return last_value(field.key) if field.end == "last" else best_value(field.key)


def _series(key: str) -> Any:
    """Select the ID of a job's series with that key, as a subquery of the list."""
    columns = metric_series.c
    found = select(columns.id).where(columns.job_id == Job.id, columns.key == key)
    return found.correlate(Job.__table__).scalar_subquery()  # type: ignore[attr-defined]


def last_value(key: str) -> ColumnElement[float | None]:
    """Select the newest value of a metric."""
    points = metric_points.c
    newest = select(points.value).where(points.series_id == _series(key)).order_by(points.step.desc())
    return newest.limit(1).scalar_subquery()


def value_at(key: str, step: int) -> ColumnElement[float | None]:
    """Select the finite value that was measured at a step."""
    points = metric_points.c
    at_step = select(points.value).where(
        points.series_id == _series(key), points.step == step, points.value.between(-_LARGEST, _LARGEST)
    )
    return at_step.scalar_subquery()


def best_value(key: str) -> ColumnElement[float | None]:
    """Select the best value over the rollups and over the points that are in none yet."""
    points, rollups = metric_points.c, metric_rollups.c
    is_least = suit_mode(key) == "min"
    extreme = func.min if is_least else func.max
    complete = case((col(Job.metric_step) > 0, col(Job.metric_step) // ROLLUP_STEPS), else_=0)
    table = Job.__table__  # type: ignore[attr-defined]
    summed = select(extreme(rollups.min_value if is_least else rollups.max_value).label("value")).where(
        rollups.series_id == _series(key), rollups.bucket < complete
    )
    rest = select(extreme(points.value).label("value")).where(
        points.series_id == _series(key),
        points.step >= complete * ROLLUP_STEPS,
        points.value.between(-_LARGEST, _LARGEST),
    )
    both = union_all(summed.correlate(table), rest.correlate(table)).subquery()
    return select(extreme(both.c.value)).scalar_subquery()


def _parameter(name: str, *, is_word: bool, dialect: str) -> ColumnElement[Any]:
    """Build the expression of a training's parameter as ``map_resolved`` finds it.

    That is the stored one; for a job from before configurations were stored the given one, else its preset's,
    else its recipe's default. Words are in small letters, as names are: databases differ in where they put
    capitals.
    """
    kind, value = _read_json(col(Job.params), name, is_word=is_word, dialect=dialect)
    given = case((kind.is_(None), _default(name, is_word=is_word)), else_=value)
    path = ("composition", "params", name)
    _, composed = _read_json(col(JobConfiguration.document), path, is_word=is_word, dialect=dialect)
    is_own = col(JobConfiguration.job_id) == Job.id
    table = Job.__table__  # type: ignore[attr-defined]
    found: ColumnElement[Any] = case(
        (col(Job.kind) != TRAIN, null()),
        (
            select(col(JobConfiguration.job_id)).where(is_own).correlate(table).exists(),
            select(composed).where(is_own).correlate(table).scalar_subquery(),
        ),
        else_=given,
    )
    return func.lower(found) if is_word else found


def _read_json(
    column: Any, path: str | tuple[str, ...], *, is_word: bool, dialect: str
) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Return the JSON type of a value in a column, and the value if it is a number (a text for ``is_word``).

    A name alone is of a column that PostgreSQL stores parsed (JSONB), a path of one that it keeps as text.
    """
    if dialect == "sqlite":
        place = f"$.{path}" if isinstance(path, str) else f"$.{'.'.join(path)}"
        kind: Any = func.json_type(column, place)
        found: Any = func.json_extract(column, place)
        kinds = ("text",) if is_word else ("integer", "real", "true", "false")
        return kind, case((kind.in_(kinds), found), else_=null())
    read = column[path]
    kind = (func.jsonb_typeof if isinstance(path, str) else func.json_typeof)(read)
    text = read.as_string()
    if is_word:
        return kind, case((kind == "string", text), else_=null())
    truth = case((text == "true", 1.0), else_=0.0)
    number = case((kind == "number", cast(text, Float(53))), (kind == "boolean", truth), else_=null())
    return kind, number


def _default(name: str, *, is_word: bool) -> ColumnElement[Any]:
    """Build the expression of a parameter that was not given, by recipe and preset."""
    presets: dict[Any, list[Any]] = defaultdict(list)
    recipes: dict[Any, list[str]] = defaultdict(list)
    for recipe in list_recipes():
        for preset_id, value in _list_values(recipe, name):
            if preset_id is None:
                recipes[value].append(recipe.id)
            else:
                presets[value].append(and_(col(Job.recipe) == recipe.id, col(Job.preset) == preset_id))
    whens = [(condition, value) for value, conditions in presets.items() for condition in conditions]
    whens += [(col(Job.recipe).in_(ids), value) for value, ids in recipes.items()]
    kind: Any = String if is_word else Float(53)
    fitting = [
        (condition, null() if value is None else literal(value if is_word else float(value), kind))
        for condition, value in whens
        if value is None or isinstance(value, str) == is_word
    ]
    return case(*fitting, else_=null()) if fitting else cast(null(), kind)


def _list_values(recipe: Recipe, name: str) -> list[tuple[str | None, Any]]:
    """List the values that the presets of a recipe set a parameter to, and (None) its default."""
    parameter = recipe.parameter(name)
    if parameter is None:
        return []
    own = [(preset.id, preset.params[name]) for preset in recipe.presets if name in preset.params]
    found = [*own, (None, parameter.default)]
    return [
        (preset_id, value)
        for preset_id, value in found
        if value is None or isinstance(value, str | int | float)
    ]
