"""Sweeps as YAML that a person writes: checked as a whole, each problem with its line."""

from pydantic import ValidationError
from sqlmodel import Session
from trellis_data.pipeline.document import Document, UnreadableDocument, parse_document

from trellis_api.core.settings import Settings
from trellis_api.core.texts import storable
from trellis_api.job_pipelines.documents import split_field
from trellis_api.jobs.names import with_ids as job_with_ids
from trellis_api.names.errors import AmbiguousName
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
        request = with_ids(session, SweepCreate.model_validate(found.value))
    except ValidationError as error:
        return _refuse(*(_place(found, "invalid_value", each["loc"], each["msg"]) for each in error.errors()))
    except AmbiguousName as error:
        field = split_field(error.details[0]["field"])
        return _refuse(_place(found, error.code, field, error.message))
    plan = make_plan(session, settings, request=request)
    if plan.errors:
        return _refuse(
            *(_place(found, each.code, split_field(each.field), each.message) for each in plan.errors)
        )
    return SweepChecked(document=request, problems=[])


def with_ids(session: Session, request: SweepCreate) -> SweepCreate:
    """Return the request with the IDs of what its job calls by name."""
    return request.model_copy(update={"job": job_with_ids(session, request.job, field="job.")})


def _refuse(*problems: SweepProblem) -> SweepChecked:
    return SweepChecked(document=None, problems=sorted(problems, key=lambda each: each.line or 0))


def _place(found: Document, code: str, place: tuple[int | str, ...], message: str) -> SweepProblem:
    field, message = storable(".".join(map(str, place))), storable(message)
    return SweepProblem(code=code, field=field, message=message, line=found.line_of(place))
