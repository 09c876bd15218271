"""Licences of datasets: those of their sources, passed on to what is made of their rows."""

from typing import Any

from sqlmodel import Session, col, select
from trellis_data.versions.records import Version

from trellis_api.datasets.models import Dataset, DatasetVersion

#: Of one dataset; a mixture of more is described in words.
MAX_LICENCES = 20
_MAX_CHARACTERS = 120


def pass_on(session: Session, *, dataset: Dataset, version: Version) -> None:
    """Add what a new version brings to a dataset's licences: its source's, and those of its inputs."""
    provenance = version.commit.provenance
    found = [*dataset.licences, *_read_notes(provenance.notes)]
    if provenance.inputs:
        of_inputs = select(Dataset).join(DatasetVersion, col(DatasetVersion.dataset_id) == col(Dataset.id))
        rows = session.exec(of_inputs.where(col(DatasetVersion.id).in_(provenance.inputs)))
        found += [licence for each in sorted(rows, key=lambda each: each.id) for licence in each.licences]
    distinct = list(dict.fromkeys(found))[:MAX_LICENCES]
    if distinct != dataset.licences:
        dataset.licences = distinct
        session.add(dataset)
        session.flush()


def _read_notes(notes: dict[str, Any]) -> list[str]:
    """Return the licenses that an import found in its source's card."""
    noted = notes.get("licences")
    found = noted if isinstance(noted, list) else []
    return [each for each in found if isinstance(each, str) and 0 < len(each) <= _MAX_CHARACTERS]
