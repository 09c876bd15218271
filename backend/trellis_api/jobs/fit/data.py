"""Decides before a launch whether a dataset suits a recipe, and what to do where it does not.

A dataset is read as one format, each of whose roles one column plays. The choice is the person's
(``columns``, ``data_format``); what is left open follows from what the import found and from usual names.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat, Recipe
from trellis_contracts.row_formats import CONVERSIONS, FORMAT_ROLES, ColumnKind, DataRole, role_of
from trellis_data.json_rows import to_json
from trellis_data.reading.column_types import kind_of
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_recipes.data.reference_answers import is_checkable
from trellis_recipes.data.row_values import BadRow, RowReader

from trellis_api.datasets.view import DatasetView
from trellis_api.jobs.errors import UnsuitableDataset
from trellis_api.jobs.fit import texts as fit_texts
from trellis_api.jobs.fit.schemas import DataConversion, DataFit, DataOffer, DataSample, MissingRole
from trellis_api.jobs.models import Job

log = logging.getLogger(__name__)

#: What a job reads a dataset for.
Split = Literal["training", "validation"]

MAX_OFFERS = 8
#: Of a text in the sample.
MAX_SHOWN_CHARACTERS = 2000
#: What a column named "label" may hold to be offered as a label: text hardly ever is one.
_LIKELY_LABELS = frozenset({ColumnKind.BOOLEAN, ColumnKind.NUMBER})


@dataclass(frozen=True)
class Choice:
    """What a person said about the dataset."""

    columns: Mapping[str, str]
    data_format: DataFormat | None = None


@dataclass(frozen=True)
class _Reading:
    """A format, the columns that play its roles, and the roles that none plays."""

    format: DataFormat
    columns: dict[str, str]
    missing: list[MissingRole]


def fit(recipe: Recipe, dataset: DatasetView, choice: Choice) -> DataFit:
    """Determine how the rows would be read for the recipe."""
    types = _types_of(dataset)
    reading = _choose_reading(recipe, dataset, choice, types)
    form = recipe.row_format
    is_sampled = reading.format is recipe.sampled_from
    can_be_read = (is_sampled or reading.format in CONVERSIONS[form]) and not reading.missing
    # What the model will say to a prompt is not known yet: the sample is the prompt.
    shown_as = reading.format if is_sampled else form
    sample = _make_sample(reading, shown_as, dataset.paths) if can_be_read else None
    conversion = None
    if can_be_read and reading.format is not form:
        conversion = DataConversion(
            source=reading.format,
            to=form,
            columns=reading.columns,
            how=fit_texts.describe_conversion(form, reading.format),
        )
    return DataFit(
        wanted=form,
        found=dataset.format,
        read_as=reading.format,
        columns=reading.columns,
        fits=can_be_read and (sample is None or sample.problem is None),
        missing=reading.missing,
        conversion=conversion,
        offers=list(islice(_offer(recipe, dataset, types, reading), MAX_OFFERS)),
        sample=sample,
    )


def choice_of(job: Job, dataset: DatasetView, *, split: Split) -> Choice:
    """Return a job's data settings for a dataset; for validation data, only those that also apply to it."""
    data_format = format_of(job.data_format)
    if split == "training":
        return Choice(job.data_columns, data_format)
    if job.validation_columns or job.validation_data_format:
        return Choice(job.validation_columns, format_of(job.validation_data_format))
    names = {column["name"] for column in dataset.columns}
    return Choice({role: name for role, name in job.data_columns.items() if name in names}, data_format)


def format_of(name: str | None) -> DataFormat | None:
    """Return the format with this name; None for no name."""
    return DataFormat(name) if name else None


def read_for(recipe: Recipe, dataset: DatasetView, choice: Choice) -> tuple[DataFormat, dict[str, str]]:
    """Choose the format that the dataset's rows are read as, and the columns that play its roles."""
    reading = _choose_reading(recipe, dataset, choice, _types_of(dataset))
    return reading.format, reading.columns


def has_uncheckable_answers(found: DataFit) -> bool:
    """Tell whether the first row's reference answer is a whole turn of its conversation."""
    if found.read_as is not DataFormat.MESSAGES or found.wanted is not DataFormat.VERL_RL:
        return False
    if found.sample is None or found.sample.problem is not None:
        return False
    try:
        turns = RowReader(found.read_as, found.columns).conversation(found.sample.before)
    except BadRow:  # tools in a text that is shortened in the sample
        return False
    last = next(turn["content"] for turn in reversed(turns) if turn["role"] == "assistant")
    truth = found.sample.after[0]["reward_model"]["ground_truth"]
    # A long solution is shortened in the sample; the answer that was found in it is not.
    return truth == last.strip() and not is_checkable(truth)


def _types_of(dataset: DatasetView) -> dict[str, str]:
    return {column["name"]: column["type"] for column in dataset.columns}


def refuse(learner: str, dataset: DatasetView, found: DataFit, *, field: str) -> UnsuitableDataset:
    """Build the error for an unsuitable dataset: what is missing, and which other readings are possible."""
    message = explain(learner, dataset, found)
    details = {
        "code": UnsuitableDataset.code,
        "field": field,
        "message": message,
        "missing": [each.model_dump(mode="json") for each in found.missing],
        "offers": [each.model_dump(mode="json") for each in found.offers],
    }
    return UnsuitableDataset(message, [details])


def explain(learner: str, dataset: DatasetView, found: DataFit) -> str:
    """Explain in one or two sentences why the dataset doesn't suit the recipe, and the easiest fix."""
    accepted = CONVERSIONS[found.wanted]
    if found.read_as not in accepted:
        reason = f"{dataset.name} is {found.read_as} data; {learner} accepts {', '.join(accepted)}."
        if recipes := _list_recipes_for(found.read_as):
            reason += f" Recipes for {found.read_as} data: {', '.join(recipes)}."
    elif found.missing:
        reason = f"{dataset.name} cannot be read as {found.read_as} for {learner}: "
        reason += " ".join(missing.reason.en for missing in found.missing)
    else:
        problem = found.sample.problem if found.sample else ""
        reason = f"The first row of {dataset.name} is invalid: {problem}."
    return f"{reason} {found.offers[0].label.en}?" if found.offers else reason


def _list_recipes_for(data_format: DataFormat) -> list[str]:
    """List the recipes that train on rows of a format as they are; those of agents expect more in them."""
    return [each.id for each in list_recipes() if each.row_format is data_format and each.family != "agent"]


def _choose_reading(recipe: Recipe, dataset: DatasetView, choice: Choice, types: dict[str, str]) -> _Reading:
    """Choose the requested format, else the detected one, else the closest one that the recipe accepts."""
    if choice.data_format is not None:
        return _read_as(choice.data_format, dataset, choice.columns, types)
    own = dataset.format
    readings = [
        _read_as(each, dataset, choice.columns, types)
        for each in (own, *recipe.data_formats)
        if each in recipe.data_formats
    ]
    if own in recipe.data_formats and (not choice.columns or not readings[0].missing):
        return readings[0]
    complete = [reading for reading in readings if not reading.missing]
    if choice.columns and complete:
        return complete[0]
    if not choice.columns and own is not DataFormat.UNKNOWN:
        return _Reading(own, dict(dataset.format_columns), [])
    # Nothing fits as it is: the reading that comes nearest says what is missing.
    return min(readings, key=lambda reading: (not reading.columns, len(reading.missing)))


def _read_as(
    data_format: DataFormat, dataset: DatasetView, columns: Mapping[str, str], types: Mapping[str, str]
) -> _Reading:
    found = dataset.format_columns if data_format == dataset.format else {}
    roles = FORMAT_ROLES[data_format]
    names = [role.name for role in roles]
    taken: dict[str, str] = {}
    missing = [
        MissingRole(role=name, looked_for=names, reason=fit_texts.no_such_role(name, data_format, names))
        for name in columns
        if name not in names
    ]
    for role in roles:
        if role.name in columns:
            problem = _why_unfit(role, columns[role.name], types)
            if problem is None:
                taken[role.name] = columns[role.name]
            else:
                missing.append(problem)
        elif role.name in found:
            taken[role.name] = found[role.name]
        elif not (role.is_optional and role.name in ("system", "input")):  # found beside a prompt anyway
            usual = next((name for name in role.usual_columns if _suits(role, types.get(name))), None)
            if usual is not None:
                taken[role.name] = usual
            elif not role.is_optional:
                missing.append(_missing(role))
    if _lacks_prompt(data_format, taken, types):
        prompt = role_of(data_format, "prompt")
        missing += [_missing(prompt)] if prompt else []
    return _Reading(data_format, taken, missing)


def _lacks_prompt(data_format: DataFormat, taken: Mapping[str, str], types: Mapping[str, str]) -> bool:
    """Tell whether both sides of a pair are plain texts without a prompt column."""
    if data_format is not DataFormat.PREFERENCE or "prompt" in taken:
        return False
    sides = (taken.get("chosen"), taken.get("rejected"))
    return any(side is not None and kind_of(types.get(side, "")) is ColumnKind.TEXT for side in sides)


def _suits(role: DataRole, type_: str | None) -> bool:
    return type_ is not None and kind_of(type_) in role.kinds


def _missing(role: DataRole) -> MissingRole:
    looked_for = list(role.usual_columns)
    return MissingRole(
        role=role.name, looked_for=looked_for, reason=fit_texts.no_column(role.name, looked_for)
    )


def _why_unfit(role: DataRole, column: str, types: Mapping[str, str]) -> MissingRole | None:
    """Explain why a column that the user named does not fit; None if it does."""
    if column not in types:
        reason = fit_texts.no_such_column(role.name, column)
    elif not _suits(role, types[column]):
        reason = fit_texts.wrong_kind(role.name, column, types[column], sorted(role.kinds))
    else:
        return None
    return MissingRole(role=role.name, looked_for=[column], reason=reason)


def _offer(
    recipe: Recipe, dataset: DatasetView, types: dict[str, str], current: _Reading
) -> Iterator[DataOffer]:
    """Offer other complete readings: by usual column names first, then by column contents."""
    usual = [_read_as(each, dataset, {}, types) for each in recipe.data_formats]
    complete = [(each.format, each.columns) for each in usual if not each.missing]
    lacking: list[_Reading] = []
    if current.missing or current.format not in recipe.data_formats:
        lacking = [each for each in usual if each.missing]
        lacking.sort(key=lambda reading: reading.format is not current.format)
    # One by one: of a dataset with many columns there are millions, and the caller takes a few.
    guesses = ((each.format, columns) for each in lacking for columns in _guess(each, types))
    for data_format, columns in chain(complete, guesses):
        is_current = (data_format, columns) == (current.format, current.columns)
        if columns and (current.missing or not is_current):
            label = fit_texts.describe_reading(data_format, columns)
            yield DataOffer(format=data_format, columns=columns, label=label)


def _guess(reading: _Reading, types: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield readings in which other columns of a likely type play the missing roles."""
    free = [name for name in types if name not in reading.columns.values()]
    roles = [role for each in reading.missing if (role := role_of(reading.format, each.role))]
    candidates = [[name for name in free if kind_of(types[name]) in _likely_kinds(role)] for role in roles]
    for names in product(*candidates):
        if len(set(names)) == len(names):
            yield {**reading.columns, **{role.name: name for role, name in zip(roles, names, strict=True)}}


def _likely_kinds(role: DataRole) -> frozenset[ColumnKind]:
    return role.kinds & _LIKELY_LABELS if role.name == "label" else role.kinds


def _make_sample(reading: _Reading, form: DataFormat, paths: Sequence[Path]) -> DataSample | None:
    try:
        row = _read_first_row(paths)
    except (OSError, pa.ArrowException) as error:
        log.warning("the first row of %s cannot be read: %s", paths[0], error)
        return None
    if row is None:
        return None
    after: list[dict[str, Any]] = []
    problem = None
    try:
        after = choose_conversion(reading.format, form, reading.columns)(row, Place(0, "train"))
    except BadRow as error:
        problem = str(error)
    shown = [_shorten(to_json(each)) for each in after]
    return DataSample(before=_shorten(to_json(row)), after=shown, problem=problem)


def _read_first_row(paths: Sequence[Path]) -> dict[str, Any] | None:
    for path in paths:
        with pq.ParquetFile(path) as file:
            # Threads would take longer to begin than the row takes to read.
            for batch in file.iter_batches(batch_size=1, use_threads=False):
                row: dict[str, Any] = batch.to_pylist()[0]
                return row
    return None


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shorten(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    if isinstance(value, str) and len(value) > MAX_SHOWN_CHARACTERS:
        return value[:MAX_SHOWN_CHARACTERS] + "…"
    return value
