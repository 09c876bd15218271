"""Pipelines of jobs as YAML that a person writes: checked as a whole, each problem with its line."""

from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_data.pipeline.document import Document, UnreadableDocument, parse_document

from trellis_api.core.settings import Settings
from trellis_api.core.texts import storable
from trellis_api.job_pipelines.checking import check_stages
from trellis_api.job_pipelines.errors import InvalidJobPipeline
from trellis_api.job_pipelines.schemas import (
    DocumentProblem,
    JobPipelineChecked,
    JobPipelineCreate,
    StageCreate,
)
from trellis_api.jobs.names import with_names_of_parameters
from trellis_api.names.errors import AmbiguousName
from trellis_api.names.resolve import DATASETS, MODELS, find_id
from trellis_api.rewards.names import with_order_ids

_ROWS = ("dataset", "validation_dataset")


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
        request = with_ids(session, JobPipelineCreate.model_validate(found.value))
    except ValidationError as error:
        return _refuse(*(_place(found, "invalid_value", each["loc"], each["msg"]) for each in error.errors()))
    except AmbiguousName as error:
        field = split_field(error.details[0]["field"])
        return _refuse(_place(found, error.code, field, error.message))
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


def with_ids(session: Session, request: JobPipelineCreate) -> JobPipelineCreate:
    """Return the request with the IDs of what its stages call by name."""
    stages = [_with_ids(session, stage, f"stages.{at}") for at, stage in enumerate(request.stages)]
    return request.model_copy(update={"stages": stages})


def _with_ids(session: Session, stage: StageCreate, field: str) -> StageCreate:
    found: dict[str, Any] = {
        name: find_id(session, DATASETS, called, field=f"{field}.{name}")
        for name in _ROWS
        if (called := getattr(stage, name)) is not None
    }
    if stage.model.base is not None:
        base = find_id(session, MODELS, stage.model.base, field=f"{field}.model.base")
        found["model"] = stage.model.model_copy(update={"base": base})
    if stage.params:
        found["params"] = with_names_of_parameters(session, stage.params, field=f"{field}.params")
    if stage.benchmarks:
        found["benchmarks"] = with_order_ids(session, stage.benchmarks, field=f"{field}.benchmarks")
    return stage.model_copy(update=found)
