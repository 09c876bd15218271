"""What pipelines are going to use: what the stages that wait or run name, and the models made for them."""

from collections.abc import Collection, Iterator

from sqlmodel import Session

from trellis_api.core.uses import Use, VersionKey, pick
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.named import list_named
from trellis_api.jobs.named import Named


def find_of_datasets(session: Session, dataset_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active pipelines that are going to read datasets."""
    return pick(_list_active(session), dataset_ids, lambda named, key: key in named.datasets)


def find_of_versions(session: Session, versions: Collection[VersionKey]) -> dict[VersionKey, list[Use]]:
    """List active pipelines that are going to read certain versions of datasets, by their ids."""
    return pick(_list_active(session), versions, Named.has_version)


def find_of_models(session: Session, model_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active pipelines that are going to start from models, measure them or score with them."""
    return pick(_list_active(session), model_ids, lambda named, key: key in named.models)


def find_of_reward_files(session: Session, file_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active pipelines that are going to score with a person's own files."""
    return pick(_list_active(session), file_ids, lambda named, key: key in named.reward_files)


def find_of_benchmarks(session: Session, names: Collection[str]) -> dict[str, list[Use]]:
    """List active pipelines that are going to measure models on benchmarks."""
    return pick(_list_active(session), names, lambda named, key: key in named.benchmarks)


def find_of_environments(session: Session, environment_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active pipelines that are going to train in environments."""
    return pick(_list_active(session), environment_ids, lambda named, key: key in named.environments)


def find_of_workflows(session: Session, workflow_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active pipelines that are going to train with a person's agent code."""
    return pick(_list_active(session), workflow_ids, lambda named, key: key in named.workflows)


def _list_active(session: Session) -> Iterator[tuple[Use, Named]]:
    """List each active pipeline with what its unfinished stages name."""
    stages = repository.list_stages_of_active(session)
    for pipeline_id, (name, found) in stages.items():
        yield Use("pipeline", pipeline_id, name), list_named(found)
