"""What rewards use: rows that dry runs score, files and models that jobs and dry runs score with."""

from collections.abc import Iterable

from sqlmodel import Session, col, select
from trellis_contracts.states import ACTIVE

from trellis_api.core.uses import Use, VersionKey, list_newest
from trellis_api.jobs.models import Job
from trellis_api.rewards.models import DryRun
from trellis_api.rewards.repository import UNFINISHED
from trellis_api.rewards.resources import as_terms, names_used


def find_of_dataset(session: Session, dataset_id: str) -> Iterable[Use]:
    """List unfinished dry runs that read a dataset."""
    query = select(DryRun.id).where(DryRun.dataset_id == dataset_id, col(DryRun.state).in_(UNFINISHED))
    return [Use("dry_run", run_id) for run_id in session.exec(query)]


def find_of_version(session: Session, version: VersionKey) -> Iterable[Use]:
    """List dry runs that read a version, or did."""
    reads = (col(DryRun.dataset_id) == version.dataset_id) & (col(DryRun.dataset_version) == version.id)
    query = select(DryRun).where(reads).order_by(col(DryRun.created_at).desc())
    for run in list_newest(session, query, col(DryRun.state).in_(UNFINISHED)):
        yield Use("dry_run", run.id, state=run.state, is_unfinished=run.state in UNFINISHED)


def find_of_model(session: Session, model_id: str) -> Iterable[Use]:
    """List unfinished jobs and dry runs that score with a model."""
    return _list_scoring_with(session, "models", model_id)


def find_of_file(session: Session, file_id: str) -> Iterable[Use]:
    """List unfinished jobs and dry runs that score with a file."""
    return _list_scoring_with(session, "reward-files", file_id)


def _list_scoring_with(session: Session, source: str, identifier: str) -> list[Use]:
    found = [
        use
        for use, rewards in _list_unfinished(session)
        if any(used[:2] == (source, identifier) for used in names_used(as_terms(rewards)))
    ]
    return sorted(found, key=lambda use: use.label)


def _list_unfinished(session: Session) -> Iterable[tuple[Use, object]]:
    """List every unfinished job and dry run, with its rewards."""
    jobs = select(Job.id, Job.name, Job.params).where(col(Job.state).in_(ACTIVE))
    for job_id, name, params in session.exec(jobs):
        yield Use("job", job_id, name), params.get("rewards")
    runs = select(DryRun.id, DryRun.rewards).where(col(DryRun.state).in_(UNFINISHED))
    for run_id, rewards in session.exec(runs):
        yield Use("dry_run", run_id), rewards
