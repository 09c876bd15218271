"""What the stored requests of trainings and evaluations name that are not carried out yet.

Pipelines and sweeps keep such requests: what they name has to stay until they are over.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlmodel import Session
from trellis_recipes.workflows.source import AUXILIARY

from trellis_api.core.uses import RefKey, Use, VersionKey, pick
from trellis_api.datasets.repository import lock_dataset
from trellis_api.datasets.versions import may_name
from trellis_api.endpoints.auxiliary import find_model_ids, list_our_models
from trellis_api.environments.resources import keep_environment
from trellis_api.environments.uses import PARAMETER as ENVIRONMENT
from trellis_api.models.repository import lock_model
from trellis_api.rewards.files import FILES
from trellis_api.rewards.resources import as_terms, names_used
from trellis_api.workflows.service import PARAMETER as WORKFLOW
from trellis_api.workflows.service import keep_workflow


@dataclass
class Named:
    """Ids of what a request names, by kind; benchmarks, and models that agent code calls, by name."""

    datasets: set[str] = field(default_factory=set)
    #: Datasets, each with what chooses one of its versions: an id or its first digits, a branch or a tag.
    revisions: set[tuple[str, str]] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    auxiliary_models: set[str] = field(default_factory=set)
    reward_files: set[str] = field(default_factory=set)
    benchmarks: set[str] = field(default_factory=set)
    environments: set[str] = field(default_factory=set)
    workflows: set[str] = field(default_factory=set)

    def has_version(self, version: VersionKey) -> bool:
        """Tell whether a version is named by its id; branches and tags protect what they stand on."""
        return any(
            dataset_id == version.dataset_id and may_name(revision, version_id=version.id)
            for dataset_id, revision in self.revisions
        )

    def add_training(self, request: Mapping[str, Any]) -> None:
        """Add what a training names: a request for a job, or a stage, as JSON."""
        dataset, validation = request.get("dataset"), request.get("validation_dataset")
        self._add_rows(dataset, request.get("dataset_version"))
        self._add_rows(validation or dataset, request.get("validation_version"))
        params = request.get("params") or {}
        for source, name, _ in names_used(as_terms(params.get("rewards"))):
            if source == "models":
                self.models.add(name)
            elif source == "reward-files":
                self.reward_files.add(name)
        for parameter, names in ((ENVIRONMENT, self.environments), (WORKFLOW, self.workflows)):
            if isinstance(value := params.get(parameter), str):
                names.add(value)
        self.auxiliary_models |= list_our_models(params.get(AUXILIARY))
        if isinstance(model := request.get("model"), str):
            self.models.add(model)
        self.add_orders((request.get("evaluate") or {}).get("benchmarks") or ())

    def add_orders(self, orders: Iterable[Mapping[str, Any]]) -> None:
        """Add what the orders of an evaluation name."""
        for order in orders:
            self.benchmarks.add(str(order.get("benchmark")))
            self._add_rows(order.get("dataset"), order.get("version"))
            if isinstance(file := (order.get("scorer") or {}).get("file"), str):
                self.reward_files.add(file)

    def _add_rows(self, dataset: str | None, revision: str | None) -> None:
        if dataset is None:
            return
        self.datasets.add(dataset)
        if revision is not None:
            self.revisions.add((dataset, revision))


@dataclass(frozen=True)
class UsersByRequest:
    """Finders of users that keep requests, one for each kind of thing that a request can name."""

    #: Each user that may still carry something out, with what its requests name.
    list_active: Callable[[Session], Iterable[tuple[Use, Named]]]

    def of_datasets(self, session: Session, ids: Collection[str]) -> dict[str, list[Use]]:
        """List the users that are going to read datasets."""
        return pick(self.list_active(session), ids, lambda named, key: key in named.datasets)

    def of_versions(self, session: Session, versions: Collection[VersionKey]) -> dict[VersionKey, list[Use]]:
        """List the users that are going to read certain versions of datasets, by their ids."""
        return pick(self.list_active(session), versions, Named.has_version)

    def of_refs(self, session: Session, refs: Collection[RefKey]) -> dict[RefKey, list[Use]]:
        """List the users that are going to read what branches or tags of datasets stand on by then."""
        return pick(self.list_active(session), refs, lambda named, key: tuple(key) in named.revisions)

    def of_models(self, session: Session, ids: Collection[str]) -> dict[str, list[Use]]:
        """List the users that are going to start from models, measure, call or score with them."""
        users = [(use, list_models(session, named)) for use, named in self.list_active(session)]
        return pick(users, ids, lambda models, key: key in models)

    def of_reward_files(self, session: Session, ids: Collection[str]) -> dict[str, list[Use]]:
        """List the users that are going to score with a person's own files."""
        return pick(self.list_active(session), ids, lambda named, key: key in named.reward_files)

    def of_benchmarks(self, session: Session, names: Collection[str]) -> dict[str, list[Use]]:
        """List the users that are going to measure models on benchmarks."""
        return pick(self.list_active(session), names, lambda named, key: key in named.benchmarks)

    def of_environments(self, session: Session, ids: Collection[str]) -> dict[str, list[Use]]:
        """List the users that are going to train in environments."""
        return pick(self.list_active(session), ids, lambda named, key: key in named.environments)

    def of_workflows(self, session: Session, ids: Collection[str]) -> dict[str, list[Use]]:
        """List the users that are going to train with a person's agent code."""
        return pick(self.list_active(session), ids, lambda named, key: key in named.workflows)


def list_models(session: Session, named: Named) -> set[str]:
    """List the ids of all models that are named, also of those that agent code calls by their names."""
    return named.models | find_model_ids(session, named.auxiliary_models)


def keep_named(session: Session, all_named: Collection[Named]) -> None:
    """Hold what is named until the transaction ends, so that it is not deleted before it is seen to be used.

    Whoever holds several does so in the same order.
    """
    for model_id in sorted({each for named in all_named for each in list_models(session, named)}):
        lock_model(session, model_id=model_id, is_shared=True)
    for dataset_id in sorted({each for named in all_named for each in named.datasets}):
        lock_dataset(session, dataset_id=dataset_id, is_shared=True)
    for file_id in sorted({each for named in all_named for each in named.reward_files}):
        FILES.lock(session, file_id, is_shared=True)
    for workflow_id in sorted({each for named in all_named for each in named.workflows}):
        keep_workflow(session, {WORKFLOW: workflow_id})
    for environment_id in sorted({each for named in all_named for each in named.environments}):
        keep_environment(session, {ENVIRONMENT: environment_id})
