"""The version that a task reads."""

from pathlib import Path

from trellis_data.versions.records import Version
from trellis_data.versions.store import Store

from trellis_workers.data.files import ChildTask


def read_version(task: ChildTask) -> tuple[Store, Version]:
    """Return the store and the version."""
    if task.version is None:
        raise ValueError("a task that reads rows needs a version")
    store = Store(Path(task.store))
    return store, store.version(task.version)
