"""Pipelines of jobs as YAML that a person writes: checked as a whole, each problem with its line."""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_data.pipeline.document import Document, UnreadableDocument, parse_document

from trellis_api.core.settings import Settings
from trellis_api.core.texts import storable
from trellis_api.datasets.repository import find_dataset_named
from trellis_api.evaluations.orders import MAX_BENCHMARKS
from trellis_api.job_pipelines.checking import check_stages
from trellis_api.job_pipelines.errors import InvalidJobPipeline
from trellis_api.job_pipelines.schemas import (
    MAX_STAGES,
    DocumentProblem,
    JobPipelineChecked,
    JobPipelineCreate,
)
from trellis_api.models.repository import find_model_named

_ROWS = ("dataset", "validation_dataset")
#: The id that a name stands for; what is no name of anything stays as it is.
Find = Callable[[str], str]


def check_document(session: Session, settings: Settings, *, text: str) -> JobPipelineChecked:
    """Return the request that a text stands for, and everything that is wrong with it; nothing is written."""
    try:
        found = parse_document(text)
    except UnreadableDocument as error:
        message = storable(str(error))
        return _refuse(DocumentProblem(code="not_yaml", field="", message=message, line=error.line))
    if not isinstance(found.value, dict):
        message = "Must be a mapping with name and stages."
        return _refuse(DocumentProblem(code="not_a_pipeline", field="", message=message, line=1))
    try:
        request = JobPipelineCreate.model_validate(_with_ids(session, found.value))
    except ValidationError as error:
        return _refuse(*(_place(found, "invalid_value", each["loc"], each["msg"]) for each in error.errors()))
    try:
        check_stages(session, settings, request=request)
    except InvalidJobPipeline as error:
        issues = error.details if isinstance(error.details, list) else []
        return _refuse(
            *(_place(found, each["code"], split_field(each["field"]), each["message"]) for each in issues)
        )
    return JobPipelineChecked(document=request, problems=[])


def _refuse(*problems: DocumentProblem) -> JobPipelineChecked:
    return JobPipelineChecked(document=None, problems=sorted(problems, key=lambda each: each.line or 0))


def _place(found: Document, code: str, place: tuple[int | str, ...], message: str) -> DocumentProblem:
    # A key may hold what no answer can be written with, such as one half of a surrogate pair.
    field, message = storable(".".join(map(str, place))), storable(message)
    return DocumentProblem(code=code, field=field, message=message, line=found.line_of(place))


def split_field(field: str) -> tuple[int | str, ...]:
    """Split a field such as ``stages.0.model`` into its path in a document."""
    return tuple(int(part) if part.isascii() and part.isdigit() else part for part in field.split("."))


def _with_ids(session: Session, content: dict[str, Any]) -> dict[str, Any]:
    """Replace names of models and datasets by their ids, as the command line accepts them."""
    stages = content.get("stages")
    # Nothing is looked up for more stages than the schema takes: it refuses them.
    if not isinstance(stages, list) or len(stages) > MAX_STAGES:
        return content
    find_rows, find_base = dataset_ids(session), model_ids(session)
    return {**content, "stages": [_stage_with_ids(stage, find_rows, find_base) for stage in stages]}


def _stage_with_ids(stage: Any, find_rows: Find, find_base: Find) -> Any:
    if not isinstance(stage, dict):
        return stage
    made = replace(stage, _ROWS, find_rows)
    if "model" in made:
        made["model"] = replace(made["model"], ("base",), find_base)
    orders = made.get("benchmarks")
    if isinstance(orders, list) and len(orders) <= MAX_BENCHMARKS:
        made["benchmarks"] = [replace(order, ("dataset",), find_rows) for order in orders]
    return made


def replace(content: Any, fields: tuple[str, ...], find: Find) -> Any:
    """Return the mapping with names in these fields replaced by IDs; anything else stays as it is."""
    if not isinstance(content, dict):
        return content
    return {
        field: find(value) if field in fields and isinstance(value, str) else value
        for field, value in content.items()
    }


def dataset_ids(session: Session) -> Find:
    """Return a function that looks up IDs of datasets by name."""

    def find(name: str) -> str | None:
        row = find_dataset_named(session, name=name)
        return row.id if row else None

    return _named(find, prefix="ds_")


def model_ids(session: Session) -> Find:
    """Return a function that looks up IDs of models by name."""

    def find(name: str) -> str | None:
        row = find_model_named(session, name=name)
        return row.id if row else None

    return _named(find, prefix="mdl_")


def _named(find: Callable[[str], str | None], *, prefix: str) -> Find:
    """Return a function that looks each name up once; IDs win over names, as on the command line."""
    known: dict[str, str] = {}

    def look_up(called: str) -> str:
        # A database is not asked for what it cannot hold; the schema refuses it, with its line.
        if called.startswith(prefix) or storable(called) != called:
            return called
        if called not in known:
            known[called] = find(called) or called
        return known[called]

    return look_up
