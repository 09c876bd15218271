"""What jobs use: unfinished ones need it, finished ones are told of."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, func, or_, select
from trellis_contracts.states import ACTIVE

from trellis_api.core.references import NamedReference
from trellis_api.core.uses import Finder, Use, VersionKey, list_newest
from trellis_api.jobs.models import Job


@dataclass
class JobsNaming:
    """Jobs whose parameter has one value: how many, and the newest of them."""

    count: int = 0
    newest: list[NamedReference] = field(default_factory=list)


def find_of_dataset(session: Session, dataset_id: str) -> Iterable[Use]:
    """List unfinished jobs that learn from a dataset or validate on it."""
    return _list_unfinished(
        session, or_(col(Job.dataset_id) == dataset_id, col(Job.validation_dataset_id) == dataset_id)
    )


def find_of_model(session: Session, model_id: str) -> Iterable[Use]:
    """List unfinished jobs that start from a model."""
    return _list_unfinished(session, col(Job.model_id) == model_id)


def find_of_version(session: Session, version: VersionKey) -> Iterable[Use]:
    """List jobs that learn from a version or validate on it, or did."""
    trains = (col(Job.dataset_id) == version.dataset_id) & (col(Job.dataset_version) == version.id)
    validates = (col(Job.validation_dataset_id) == version.dataset_id) & (
        col(Job.validation_version) == version.id
    )
    query = select(Job).where(or_(trains, validates)).order_by(col(Job.created_at).desc())
    for job in list_newest(session, query, col(Job.state).in_(ACTIVE)):
        yield Use("job", job.id, job.name, state=job.state, is_unfinished=job.state in ACTIVE)


def find_naming(parameter: str) -> Finder[str]:
    """Make the finder of unfinished jobs whose parameter names a thing: an environment, a workflow."""

    def find(session: Session, keys: Collection[str]) -> dict[str, list[Use]]:
        found: dict[str, list[Use]] = {key: [] for key in keys}
        query = select(Job.id, Job.name, Job.params).where(col(Job.state).in_(ACTIVE))
        for job_id, name, params in session.exec(query):
            if isinstance(value := params.get(parameter), str) and value in found:
                found[value].append(Use("job", job_id, name))
        return found

    return find


def summarise_naming(
    session: Session, parameter: str, values: Collection[str], limit: int
) -> dict[str, JobsNaming]:
    """Count the jobs in any state whose parameter has a value, and name the newest; the rest is not read."""
    named = col(Job.params)[parameter].as_string()
    chosen = select_columns(named.label("named"), col(Job.id), col(Job.name), col(Job.created_at))
    used = chosen.where(named.in_(list(values))).subquery().c
    newest_first = (used.created_at.desc(), used.id.desc())
    place = func.row_number().over(partition_by=used.named, order_by=newest_first)
    total = func.count().over(partition_by=used.named)
    numbered = select_columns(used.named, used.id, used.name, total.label("total"), place.label("place"))
    rows = numbered.subquery().c
    query = select_columns(rows.named, rows.id, rows.name, rows.total)
    found: dict[str, JobsNaming] = {}
    for value, job_id, name, count in session.execute(query.where(rows.place <= limit).order_by(rows.place)):
        jobs = found.setdefault(value, JobsNaming(count))
        jobs.newest.append(NamedReference(id=job_id, name=name))
    return found


def _list_unfinished(session: Session, uses: ColumnElement[bool]) -> list[Use]:
    query = select(Job.id, Job.name).where(uses, col(Job.state).in_(ACTIVE)).order_by(Job.name)
    return [Use("job", job_id, name) for job_id, name in session.exec(query)]
