"""Which version is meant, and how a new one comes to a dataset.

Rows lie in the store already when a version is published; it can be seen from the moment that the
transaction with its row, its branch and the dataset's summary is committed, and not before.
"""

import logging
from collections.abc import Sequence
from typing import Any, Literal

from sqlmodel import Session
from trellis_contracts.recipe import DataFormat
from trellis_data.reading.column_types import describe_type
from trellis_data.versions.records import Tree, Version
from trellis_data.versions.store import MAIN

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.datasets import repository, version_repository
from trellis_api.datasets.errors import (
    BranchMoved,
    DatasetNotFound,
    DatasetNotReady,
    RefNameTaken,
    SplitNotFound,
    VersionAmbiguous,
    VersionNotFound,
)
from trellis_api.datasets.licences import pass_on
from trellis_api.datasets.models import Dataset, DatasetRef, DatasetVersion
from trellis_api.datasets.states import DatasetState
from trellis_api.datasets.store import open_store

log = logging.getLogger(__name__)
Origin = Literal["import", "pipeline", "generate", "rollback"]
BRANCH, TAG = "branch", "tag"
DEFAULT_SPLIT = "train"
#: Digits of an id that tell a version.
_LEAST_DIGITS = 8
_MAX_REASON = 500


def resolve(session: Session, *, dataset_id: str, revision: str | None = None) -> DatasetVersion:
    """Return the version of a branch, tag or ID (or its first eight digits); by default the tip of main."""
    name = revision or MAIN
    # A whole id is always that version, whatever a branch may be called.
    found = version_repository.find_version(session, dataset_id=dataset_id, version_id=name)
    if found is not None:
        return found
    ref = version_repository.find_ref(session, dataset_id=dataset_id, name=name)
    version_id = ref.version_id if ref is not None else name
    found = version_repository.find_version(session, dataset_id=dataset_id, version_id=version_id)
    if found is not None:
        return found
    if name == MAIN:
        raise DatasetNotReady("The dataset has no version yet.")
    return _find_by_digits(session, dataset_id, name)


def may_name(revision: str, *, version_id: str) -> bool:
    """Tell whether a revision is the ID of this version, or its first digits."""
    return len(revision) >= _LEAST_DIGITS and version_id.startswith(revision)


def choose_split(version: DatasetVersion, split: str | None = None) -> str:
    """Return the name of the split to read: the requested one, else train, or the only or first one."""
    if split is None:
        return DEFAULT_SPLIT if DEFAULT_SPLIT in version.splits else next(iter(version.splits))
    if split not in version.splits:
        known = ", ".join(version.splits)
        raise SplitNotFound(
            f"The version has no split '{split[:100]}'; available: {known}.", {"splits": [*version.splits]}
        )
    return split


def publish(
    session: Session,
    settings: Settings,
    *,
    dataset_id: str,
    branch: str,
    expected: str | None,
    version: Version,
    origin: Origin,
    task_id: str | None = None,
) -> DatasetVersion:
    """Let a version of the store be the tip of a branch, if its tip still is the ``expected`` one.

    None is expected of a branch that is to begin with the version. 409 where another version came there
    meanwhile: nothing of this one is visible then. The caller is ``writing`` in the store.
    """
    dataset = repository.lock_dataset(session, dataset_id=dataset_id)
    if dataset is None:
        raise DatasetNotFound(f"Dataset '{dataset_id}' not found.")
    ref = _check_branch(session, dataset_id, branch, expected)
    tree = open_store(settings).tree(version.commit.tree)
    row = version_repository.find_version(session, dataset_id=dataset_id, version_id=version.id)
    if row is None:
        row = _describe(session, dataset_id, version, tree, origin, task_id)
        version_repository.add(session, row)
    ref = ref or DatasetRef(dataset_id=dataset_id, name=branch, kind=BRANCH, version_id=row.id)
    ref.version_id, ref.moved_at = row.id, utc_now()
    version_repository.add(session, ref)
    pass_on(session, dataset=dataset, version=version)
    if branch == MAIN:
        _summarize(dataset, row, tree, version.commit.provenance.notes)
        session.add(dataset)
        session.flush()
    log.info("dataset %s: version %d (%s) is the tip of %s", dataset_id, row.number, row.id[:12], branch)
    return row


def find_tip(session: Session, *, dataset_id: str, branch: str) -> str | None:
    """Return the version at the tip of a branch; None if there is no such branch."""
    ref = version_repository.find_ref(session, dataset_id=dataset_id, name=branch)
    return ref.version_id if ref is not None and ref.kind == BRANCH else None


def _find_by_digits(session: Session, dataset_id: str, name: str) -> DatasetVersion:
    is_id = len(name) >= _LEAST_DIGITS and set(name) <= set("0123456789abcdef")
    found: Sequence[DatasetVersion] = ()
    if is_id:
        found = version_repository.list_versions_like(session, dataset_id=dataset_id, digits=name, limit=2)
    if not found:
        raise VersionNotFound(f"The dataset has no version, branch or tag '{name[:100]}'.")
    if len(found) > 1:
        raise VersionAmbiguous(f"'{name}' matches several IDs; provide more digits.")
    return found[0]


def _check_branch(session: Session, dataset_id: str, branch: str, expected: str | None) -> DatasetRef | None:
    ref = version_repository.find_ref(session, dataset_id=dataset_id, name=branch)
    if ref is not None and ref.kind != BRANCH:
        raise RefNameTaken(f"'{branch}' is a tag; choose another name for the branch.")
    tip = ref.version_id if ref is not None else None
    if tip != expected:
        raise BranchMoved(
            f"'{branch}' has a new version in the meantime. Review it and try again.",
            {"branch": branch, "expected": expected, "found": tip},
        )
    return ref


def _describe(
    session: Session, dataset_id: str, version: Version, tree: Tree, origin: Origin, task_id: str | None
) -> DatasetVersion:
    return DatasetVersion(
        dataset_id=dataset_id,
        id=version.id,
        number=version_repository.next_number(session, dataset_id=dataset_id),
        parents=version.commit.parents,
        message=version.commit.message,
        author=version.commit.author,
        tree=version.commit.tree,
        splits={name: split.rows for name, split in tree.splits.items()},
        row_count=tree.rows,
        size_bytes=sum(split.size_bytes for split in tree.splits.values()),
        origin=origin,
        task_id=task_id,
    )


def _summarize(dataset: Dataset, row: DatasetVersion, tree: Tree, notes: dict[str, Any]) -> None:
    """Let the dataset say of its rows what is true of this version."""
    reason = notes.get("format_reason")
    dataset.state = DatasetState.READY
    dataset.head = row.id
    dataset.format = DataFormat(tree.format).value
    dataset.format_reason = str(reason)[:_MAX_REASON] if reason else None
    dataset.format_columns = tree.roles
    dataset.row_count = row.row_count
    dataset.splits = row.splits
    dataset.columns = [{"name": field.name, "type": describe_type(field.type)} for field in tree.arrow_schema]
    dataset.warnings = list(notes.get("warnings") or [])
    dataset.size_bytes = row.size_bytes
    dataset.updated_at = utc_now()
