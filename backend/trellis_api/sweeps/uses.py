"""What sweeps use: what the request names that each of their next runs is made from."""

from collections.abc import Collection, Iterator

from sqlmodel import Session

from trellis_api.core.uses import Use, VersionKey, pick
from trellis_api.jobs.named import Named
from trellis_api.sweeps import repository
from trellis_api.sweeps.named import list_named


def find_of_datasets(session: Session, dataset_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active sweeps that read datasets."""
    return pick(_list_active(session), dataset_ids, lambda named, key: key in named.datasets)


def find_of_versions(session: Session, versions: Collection[VersionKey]) -> dict[VersionKey, list[Use]]:
    """List active sweeps that read certain versions of datasets, by their ids."""
    return pick(_list_active(session), versions, Named.has_version)


def find_of_models(session: Session, model_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active sweeps that start from models or score with them."""
    return pick(_list_active(session), model_ids, lambda named, key: key in named.models)


def find_of_reward_files(session: Session, file_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active sweeps that score with a person's own files."""
    return pick(_list_active(session), file_ids, lambda named, key: key in named.reward_files)


def find_of_benchmarks(session: Session, names: Collection[str]) -> dict[str, list[Use]]:
    """List active sweeps that measure checkpoints on benchmarks."""
    return pick(_list_active(session), names, lambda named, key: key in named.benchmarks)


def find_of_environments(session: Session, environment_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active sweeps that train in environments."""
    return pick(_list_active(session), environment_ids, lambda named, key: key in named.environments)


def find_of_workflows(session: Session, workflow_ids: Collection[str]) -> dict[str, list[Use]]:
    """List active sweeps that train with a person's agent code."""
    return pick(_list_active(session), workflow_ids, lambda named, key: key in named.workflows)


def _list_active(session: Session) -> Iterator[tuple[Use, Named]]:
    """List each sweep that may begin another run with what its request names."""
    for sweep_id, name, document in repository.list_active_documents(session):
        yield Use("sweep", sweep_id, name), list_named(document)
