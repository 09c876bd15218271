"""What models use: the rows that they were trained on, which say what they learned."""

from collections.abc import Iterable

from sqlalchemy import String, cast
from sqlmodel import Session, col, or_, select

from trellis_api.core.uses import Use, VersionKey
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model


def find_of_version(session: Session, version: VersionKey) -> Iterable[Use]:
    """List models whose lineage, which outlives the jobs in it, has a version."""
    names = cast(col(Model.lineage), String).contains(version.id)
    jobs = select(Job.id).where(
        col(Job.validation_dataset_id) == version.dataset_id, col(Job.validation_version) == version.id
    )
    validated = col(Model.source_job_id).in_(jobs)
    for model in session.exec(select(Model).where(or_(names, validated)).order_by(col(Model.created_at))):
        yield Use("model", model.id, model.name, state=model.state, is_unfinished=False)
