"""Decides about the versions of a dataset: what is listed, named, brought back and removed."""

import logging
from collections.abc import Iterable, Sequence

from sqlmodel import Session
from trellis_data.reading.column_types import describe_type
from trellis_data.versions.records import Provenance
from trellis_data.versions.store import MAIN, Entry

from trellis_api.core.columns import utc_now
from trellis_api.core.pagination import InvalidCursor, Page, decode_cursor, encode_cursor
from trellis_api.core.settings import Settings
from trellis_api.core.uses import REFS, RefKey, list_labels
from trellis_api.datasets import repository, service, uses, version_repository, versions
from trellis_api.datasets.errors import (
    DatasetNotFound,
    MainBranchStays,
    RefInUse,
    RefNameTaken,
    RefNotFound,
    VersionInUse,
)
from trellis_api.datasets.models import DatasetRef, DatasetVersion
from trellis_api.datasets.schemas import (
    ColumnRead,
    RefCreate,
    RefRead,
    RefsRead,
    RollBack,
    VersionDetail,
    VersionRead,
)
from trellis_api.datasets.store import open_store
from trellis_api.datasets.version_pages import reading
from trellis_api.datasets.version_repository import RefKind
from trellis_api.datasets.versions import BRANCH, TAG

log = logging.getLogger(__name__)
AUTHOR = "admin"
_NAMES = {BRANCH: "branch", TAG: "tag"}


def list_page(
    session: Session, *, dataset_id: str, branch: str | None, cursor: str | None, limit: int
) -> Page[VersionRead]:
    """List one page of the history, newest first; with a branch only the ancestors of its tip."""
    service.get_dataset(session, dataset_id=dataset_id)
    before = _decode_number(cursor) if cursor else None
    tip = None if branch is None else _require_tip(session, dataset_id, branch)
    rows = version_repository.list_versions(
        session, dataset_id=dataset_id, tip=tip, before=before, limit=limit + 1
    )
    shown = rows[:limit]
    return Page(
        items=present_many(session, dataset_id, shown),
        next_cursor=encode_cursor(shown[-1].number) if len(rows) > limit else None,
    )


def present_many(session: Session, dataset_id: str, rows: Sequence[DatasetVersion]) -> list[VersionRead]:
    """Present versions as clients see them."""
    refs = version_repository.list_refs(session, dataset_id=dataset_id)
    return [VersionRead.model_validate(_fields(row, refs)) for row in rows]


def present(session: Session, row: DatasetVersion) -> VersionRead:
    """Present a version as clients see it."""
    return present_many(session, row.dataset_id, [row])[0]


def read_detail(session: Session, settings: Settings, *, dataset_id: str, revision: str) -> VersionDetail:
    """Read one version: contents, provenance and uses."""
    service.get_dataset(session, dataset_id=dataset_id)
    row = versions.resolve(session, dataset_id=dataset_id, revision=revision)
    with reading(dataset_id):
        store = open_store(settings)
        tree, commit = store.tree(row.tree), store.version(row.id).commit
    refs = version_repository.list_refs(session, dataset_id=dataset_id)
    return VersionDetail.model_validate(
        {
            **_fields(row, refs),
            "format": tree.format,
            "format_columns": tree.roles,
            "columns": [
                ColumnRead(name=field.name, type=describe_type(field.type)) for field in tree.arrow_schema
            ],
            "provenance": commit.provenance.model_dump(mode="json"),
            "uses": uses.list_uses(session, row),
        }
    )


def delete_version(session: Session, *, dataset_id: str, revision: str) -> None:
    """Forget a version that nothing came of; its rows leave the store with the next tidying."""
    _lock(session, dataset_id)
    row = versions.resolve(session, dataset_id=dataset_id, revision=revision)
    refs = [
        ref
        for ref in version_repository.list_refs(session, dataset_id=dataset_id)
        if ref.version_id == row.id
    ]
    parents = version_repository.map_parents(session, dataset_id=dataset_id)
    children = [version_id for version_id, before in parents.items() if row.id in before]
    needs = uses.list_needs(session, row)
    if refs or children or needs:
        reasons = [f"the {_NAMES[ref.kind]} {ref.name}" for ref in refs]
        reasons += ["versions based on it"] * bool(children)
        reasons += [f"the {use.kind.replace('_', ' ')} {use.name or use.id}" for use in needs[:5]]
        details = {
            "branches": [ref.name for ref in refs if ref.kind == BRANCH],
            "tags": [ref.name for ref in refs if ref.kind == TAG],
            "children": children,
            "uses": [use.model_dump(mode="json") for use in needs],
        }
        raise VersionInUse(f"The version is in use by {', '.join(reasons)}.", details)
    version_repository.delete(session, row)
    log.info("dataset %s: version %d (%s) was deleted", dataset_id, row.number, row.id[:12])


def list_refs(session: Session, *, dataset_id: str) -> RefsRead:
    """List branches (main first) and tags, by name."""
    service.get_dataset(session, dataset_id=dataset_id)
    refs = version_repository.list_refs(session, dataset_id=dataset_id)
    ordered = sorted(refs, key=lambda ref: (ref.name != MAIN, ref.name))
    return RefsRead(
        branches=[present_ref(ref) for ref in ordered if ref.kind == BRANCH],
        tags=[present_ref(ref) for ref in ordered if ref.kind == TAG],
    )


def present_ref(ref: DatasetRef) -> RefRead:
    """Present a branch or tag as clients see it."""
    return RefRead(name=ref.name, version=ref.version_id, moved_at=ref.moved_at)


def create_ref(session: Session, *, dataset_id: str, kind: RefKind, request: RefCreate) -> DatasetRef:
    """Give a version a name."""
    _lock(session, dataset_id)
    row = versions.resolve(session, dataset_id=dataset_id, revision=request.version)
    taken = version_repository.find_ref(session, dataset_id=dataset_id, name=request.name)
    if taken is not None:
        raise RefNameTaken(
            f"A {_NAMES[taken.kind]} named '{request.name}' already exists.", {"name": request.name}
        )
    ref = DatasetRef(
        dataset_id=dataset_id, name=request.name, kind=kind, version_id=row.id, moved_at=utc_now()
    )
    version_repository.add(session, ref)
    return ref


def delete_ref(session: Session, *, dataset_id: str, kind: RefKind, name: str) -> None:
    """Remove a name; the versions that it led to stay in the history."""
    _lock(session, dataset_id)
    ref = version_repository.find_ref(session, dataset_id=dataset_id, name=name)
    if ref is None or ref.kind != kind:
        raise RefNotFound(f"The dataset has no {_NAMES[kind]} '{name[:100]}'.")
    if name == MAIN:
        raise MainBranchStays("The main branch can't be deleted.")
    if users := list_labels(REFS.find(session, RefKey(dataset_id, name))):
        raise RefInUse(f"The {_NAMES[kind]} is in use by {', '.join(users)[:500]}.", {"jobs": users})
    version_repository.delete(session, ref)


def roll_back(session: Session, settings: Settings, *, dataset_id: str, request: RollBack) -> DatasetVersion:
    """Create a version with the rows of an old one at the tip of a branch; the caller holds ``writing``.

    The tip stays where it has these rows already.
    """
    _lock(session, dataset_id)
    old = versions.resolve(session, dataset_id=dataset_id, revision=request.version)
    tip = _require_tip(session, dataset_id, request.branch)
    with reading(dataset_id):
        store = open_store(settings)
        before = store.version(old.id)
        entry = Entry(
            message=request.message or f"Roll back to version {old.number}: {old.message}"[:2000],
            author=AUTHOR,
            layout=store.tree(old.tree).layout,
            provenance=Provenance(inputs=[old.id], notes=before.commit.provenance.notes),
            statistics=store.statistics(before),
        )
        made = store.add_again(before, entry, [tip])
    return versions.publish(
        session,
        settings,
        dataset_id=dataset_id,
        branch=request.branch,
        expected=tip,
        version=made,
        origin="rollback",
    )


def _lock(session: Session, dataset_id: str) -> None:
    """Lock the dataset: nobody names or publishes a version meanwhile, and no job begins to read one."""
    if repository.lock_dataset(session, dataset_id=dataset_id) is None:
        raise DatasetNotFound(f"Dataset '{dataset_id}' not found.")


def _require_tip(session: Session, dataset_id: str, branch: str) -> str:
    tip = versions.find_tip(session, dataset_id=dataset_id, branch=branch)
    if tip is None:
        raise RefNotFound(f"The dataset has no branch '{branch[:100]}'.")
    return tip


def _fields(row: DatasetVersion, refs: Iterable[DatasetRef]) -> dict[str, object]:
    mine = [ref for ref in refs if ref.version_id == row.id]
    return {
        **row.model_dump(exclude={"dataset_id", "task_id"}),
        "dataset": row.dataset_id,
        "task": row.task_id,
        "branches": [ref.name for ref in mine if ref.kind == BRANCH],
        "tags": [ref.name for ref in mine if ref.kind == TAG],
    }


def _decode_number(cursor: str) -> int:
    (number,) = decode_cursor(cursor, parts=1)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > 2**31:
        raise InvalidCursor("Invalid cursor.")
    return number
