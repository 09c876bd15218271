"""Decides about saved pipelines and their versions."""

import logging

from pydantic import TypeAdapter, ValidationError
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session
from trellis_contracts.pipeline import Pipeline
from trellis_data.pipeline.document import dump_pipeline, pipeline_hash
from trellis_data.pipeline.renamed_parameters import use_present_names

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.texts import Name
from trellis_api.pipelines import repository
from trellis_api.pipelines.checking import require_keepable
from trellis_api.pipelines.errors import (
    PipelineInvalid,
    PipelineNameTaken,
    PipelineNotFound,
    PipelineVersionNotFound,
)
from trellis_api.pipelines.models import PipelineVersion, SavedPipeline
from trellis_api.pipelines.schemas import PipelineRead, PipelineSave, PipelineVersionRead

log = logging.getLogger(__name__)
_NAME: TypeAdapter[str] = TypeAdapter(Name)


def save(session: Session, *, request: PipelineSave) -> PipelineRead:
    """Save a pipeline under a name."""
    document = _prepare(request.pipeline)
    if repository.find_pipeline_named(session, name=document.name):
        raise _name_taken(document.name)
    row = SavedPipeline(id=new_id("pip"), name=document.name, description=document.description, version=1)
    version = _make_version(row.id, 1, document, request.message)
    try:
        repository.add(session, row, version)
    except IntegrityError as error:
        raise _name_taken(document.name) from error
    log.info("pipeline %s is kept as '%s'", row.id, row.name)
    return _present(row, version)


def save_version(session: Session, *, pipeline_id: str, request: PipelineSave) -> PipelineRead:
    """Keep a changed pipeline; one that does the same is renamed at most, and makes no version."""
    document = _prepare(request.pipeline)
    row = get_pipeline(session, pipeline_id=pipeline_id, for_update=True)
    version = get_version(session, row, number=None)
    namesake = repository.find_pipeline_named(session, name=document.name)
    if namesake is not None and namesake.id != row.id:
        raise _name_taken(document.name)
    if pipeline_hash(document) != version.hash:
        version = _make_version(row.id, row.version + 1, document, request.message)
    row.name, row.description, row.version = document.name, document.description, version.number
    row.updated_at = utc_now()
    try:
        session.add(row)
        repository.add(session, version)
    except IntegrityError as error:
        raise _name_taken(document.name) from error
    return _present(row, version)


def get_pipeline(session: Session, *, pipeline_id: str, for_update: bool = False) -> SavedPipeline:
    """Return the saved pipeline; 404 if there is none."""
    row = repository.find_pipeline(session, pipeline_id=pipeline_id, for_update=for_update)
    if row is None:
        raise PipelineNotFound(f"Saved pipeline '{pipeline_id}' not found.")
    return row


def get_version(session: Session, row: SavedPipeline, *, number: int | None) -> PipelineVersion:
    """Return a version, by default the newest; 404 if there is none."""
    wanted = row.version if number is None else number
    # No number of a version is near what a column holds, but a request's may be beyond it.
    found = repository.find_version(session, pipeline_id=row.id, number=wanted) if wanted < 2**31 else None
    if found is None:
        raise PipelineVersionNotFound(f"'{row.name}' has no version {wanted}; the latest is {row.version}.")
    return found


def document_of(row: SavedPipeline, version: PipelineVersion) -> Pipeline:
    """Return a version's pipeline, under the name that it has now."""
    document = {**version.document, "name": row.name, "description": row.description}
    return use_present_names(Pipeline.model_validate(document))


def read(session: Session, *, pipeline_id: str, number: int | None) -> PipelineRead:
    """Return a saved pipeline at one of its versions."""
    row = get_pipeline(session, pipeline_id=pipeline_id)
    return _present(row, get_version(session, row, number=number))


def list_page(session: Session, *, cursor: str | None, limit: int) -> Page[PipelineRead]:
    """List one page with the newest versions, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_pipelines(session, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    newest = repository.map_newest_versions(session, pipelines=shown)
    return Page(items=[_present(row, newest[row.id]) for row in shown], next_cursor=next_cursor)


def list_versions(session: Session, *, pipeline_id: str) -> list[PipelineVersionRead]:
    """List the versions of the pipeline, newest first."""
    row = get_pipeline(session, pipeline_id=pipeline_id)
    return [
        PipelineVersionRead(
            number=each.number,
            pipeline=document_of(row, each),
            hash=each.hash,
            message=each.message,
            created_at=each.created_at,
        )
        for each in repository.list_versions(session, pipeline_id=row.id)
    ]


def delete(session: Session, *, pipeline_id: str) -> None:
    """Forget a pipeline; a run holds what it ran by itself."""
    repository.delete_pipeline(session, get_pipeline(session, pipeline_id=pipeline_id, for_update=True))


def _prepare(document: Pipeline) -> Pipeline:
    require_keepable(document)
    try:
        return document.model_copy(update={"name": _NAME.validate_python(document.name)})
    except ValidationError as error:
        raise PipelineInvalid("The name must be 1 to 120 printable characters.", []) from error


def _make_version(pipeline_id: str, number: int, document: Pipeline, message: str) -> PipelineVersion:
    return PipelineVersion(
        pipeline_id=pipeline_id,
        number=number,
        document=document.model_dump(mode="json"),
        hash=pipeline_hash(document),
        message=message,
    )


def _present(row: SavedPipeline, version: PipelineVersion) -> PipelineRead:
    document = document_of(row, version)
    return PipelineRead(
        id=row.id,
        name=row.name,
        description=row.description,
        version=version.number,
        pipeline=document,
        yaml=dump_pipeline(document),
        hash=version.hash,
        message=version.message,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _name_taken(name: str) -> PipelineNameTaken:
    return PipelineNameTaken(f"A pipeline named '{name}' already exists.", {"name": name})
