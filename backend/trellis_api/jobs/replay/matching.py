"""Finds what a manifest names on this platform: under its own id, else whatever has the same content."""

from dataclasses import dataclass

from sqlmodel import Session, col, select
from trellis_recipes.issues import Issue

from trellis_api.datasets.models import DatasetVersion
from trellis_api.datasets.version_repository import find_version
from trellis_api.jobs.replay.schemas import ManifestModel, ManifestRows
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model


@dataclass(frozen=True)
class FoundRows:
    """A version with the rows of the run."""

    dataset_id: str
    version: str
    split: str | None


def match_model(session: Session, wanted: ManifestModel) -> Model | Issue:
    """Return the model with the same ID if its weights are the same, else another one with these weights."""
    own = find_model(session, model_id=wanted.model_id)
    if own is not None and own.path and wanted.sha256 in {None, own.sha256}:
        return own
    if wanted.sha256 is not None:
        same = select(Model).where(Model.sha256 == wanted.sha256, col(Model.path).is_not(None))
        found = session.exec(same.order_by(col(Model.created_at).desc())).first()
        if found is not None:
            return found
    if own is not None and own.path:
        message = f"The weights of {own.name} are not those of the run: their hash is {own.sha256}."
        return Issue(code="model_changed", field="model", message=message)
    by_hash = f" and none with the hash {wanted.sha256}" if wanted.sha256 else ""
    message = f"There is no model {wanted.model_id} with its files here{by_hash}. Register it first."
    return Issue(code="model_missing", field="model", message=message)


def match_rows(session: Session, wanted: ManifestRows, *, field: str) -> FoundRows | Issue:
    """Return the version with the same ID if its rows are the same, else another one with these rows."""
    own = find_version(session, dataset_id=wanted.dataset_id, version_id=wanted.version or "")
    same = select(DatasetVersion).where(DatasetVersion.tree == wanted.sha256)
    others = session.exec(same.order_by(col(DatasetVersion.created_at).desc())).all()
    for found in (own, *others):
        if found is None or found.tree != wanted.sha256:
            continue
        if wanted.split is None or wanted.split in found.splits:
            return FoundRows(found.dataset_id, found.id, wanted.split)
    message = (
        f"No dataset version here has the rows of the run (hash {wanted.sha256}). Import them, or restore "
        f"version {wanted.version} of {wanted.dataset_id}."
    )
    return Issue(code="rows_missing", field=field, message=message)
