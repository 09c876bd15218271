"""Sweeps as YAML that a person writes: checked as a whole, each problem with its line."""

from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_data.pipeline.document import Document, UnreadableDocument, parse_document

from trellis_api.core.settings import Settings
from trellis_api.core.texts import storable
from trellis_api.job_pipelines.documents import dataset_ids, model_ids, replace, split_field
from trellis_api.sweeps.checking import make_plan
from trellis_api.sweeps.schemas import SweepChecked, SweepCreate, SweepProblem


def check_document(session: Session, settings: Settings, *, text: str) -> SweepChecked:
    """Return the request that a text stands for, and everything that is wrong with it; nothing is written."""
    try:
        found = parse_document(text)
    except UnreadableDocument as error:
        return _refuse(SweepProblem(code="not_yaml", field="", message=storable(str(error)), line=error.line))
    if not isinstance(found.value, dict):
        message = "Must be a mapping with name, job and parameters."
        return _refuse(SweepProblem(code="not_a_sweep", field="", message=message, line=1))
    try:
        request = SweepCreate.model_validate(_with_ids(session, found.value))
    except ValidationError as error:
        return _refuse(*(_place(found, "invalid_value", each["loc"], each["msg"]) for each in error.errors()))
    plan = make_plan(session, settings, request=request)
    if plan.errors:
        return _refuse(
            *(_place(found, each.code, split_field(each.field), each.message) for each in plan.errors)
        )
    return SweepChecked(document=request, problems=[])


def _with_ids(session: Session, content: dict[str, Any]) -> dict[str, Any]:
    """Replace names of model and datasets by their ids, as the command line accepts them."""
    job = replace(content.get("job"), ("dataset", "validation_dataset"), dataset_ids(session))
    return {**content, "job": replace(job, ("model",), model_ids(session))}


def _refuse(*problems: SweepProblem) -> SweepChecked:
    return SweepChecked(document=None, problems=sorted(problems, key=lambda each: each.line or 0))


def _place(found: Document, code: str, place: tuple[int | str, ...], message: str) -> SweepProblem:
    field, message = storable(".".join(map(str, place))), storable(message)
    return SweepProblem(code=code, field=field, message=message, line=found.line_of(place))
