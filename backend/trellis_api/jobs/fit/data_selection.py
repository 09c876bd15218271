"""The rows that a job or dry run asks for, and what is said where they are not there."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.datasets.errors import (
    DatasetNotFound,
    DatasetNotReady,
    SplitNotFound,
    VersionAmbiguous,
    VersionNotFound,
)
from trellis_api.datasets.view import DatasetView, view
from trellis_api.jobs.errors import UnknownDataset, UnknownVersion


@dataclass(frozen=True)
class DataSelection:
    """Rows that are asked for; ``side`` begins the names of the fields that say so."""

    side: str
    dataset_id: str
    version: str | None
    split: str | None

    @property
    def dataset_field(self) -> str:
        """The field that names the dataset."""
        return "validation_dataset" if self.side == "validation" else "dataset"


def require_rows(session: Session, settings: Settings, wanted: DataSelection) -> DatasetView:
    """Return the rows; raises ``UnknownDataset`` or ``UnknownVersion`` with the field that is wrong."""
    try:
        return view(
            session,
            settings,
            dataset_id=wanted.dataset_id,
            revision=wanted.version,
            split=wanted.split,
        )
    except DatasetNotFound as error:
        message = f"Dataset {wanted.dataset_id} not found."
        issue = {"code": UnknownDataset.code, "field": wanted.dataset_field, "message": message}
        raise UnknownDataset(message, [issue]) from error
    except DatasetNotReady as error:
        issue = _issue(error, wanted.dataset_field)
        raise UnknownVersion(error.message, [issue]) from error
    except (VersionNotFound, VersionAmbiguous, SplitNotFound) as error:
        field = "split" if isinstance(error, SplitNotFound) else "version"
        issue = _issue(error, f"{wanted.side}_{field}")
        raise UnknownVersion(error.message, [issue]) from error


def _issue(error: DomainError, field: str) -> dict[str, Any]:
    return {"code": error.code, "field": field, "message": error.message}
