"""Finds the names that models and datasets have on Hugging Face; cards name them by these alone."""

from trellis_api.datasets.models import Dataset
from trellis_api.models.catalogue import HubOrigin, find_entry
from trellis_api.models.models import Model

_MODELSCOPE = "modelscope"


def find_repository(model: Model) -> str | None:
    """Return the repository that the weights were fetched from; None where they aren't from Hugging Face."""
    source = model.source
    if source.get("kind") == "catalogue":
        entry = find_entry(str(source["name"]))
        return entry.origin.repo_id if entry and isinstance(entry.origin, HubOrigin) else None
    if source.get("kind") != "hub" or source.get("hub") == _MODELSCOPE:
        return None
    return str(source["repo_id"])


def find_dataset_repository(dataset: Dataset) -> str | None:
    """Return the repository that the first rows came from; None where they aren't from Hugging Face."""
    name = str(dataset.source.get("name", ""))
    if dataset.source.get("kind") != "hub" or name.startswith(f"{_MODELSCOPE}:"):
        return None
    return name
