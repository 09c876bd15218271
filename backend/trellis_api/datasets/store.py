"""The one store that holds the rows of all datasets."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path

from trellis_data.versions.records import StoreProblem
from trellis_data.versions.store import Store

from trellis_api.core.settings import Settings
from trellis_api.datasets.errors import StoreBusy

FOLDER = "versions"


def open_store(settings: Settings) -> Store:
    """Open the store under the data root; create it if there is none yet."""
    return _open(settings.data_root / FOLDER)


@contextmanager
def writing(settings: Settings) -> Iterator[Store]:
    """Yield the store, with cleanup blocked meanwhile; 409 if a running cleanup does not end soon."""
    store = open_store(settings)
    with ExitStack() as held:
        try:
            held.enter_context(store.writing())
        except StoreProblem as error:
            raise StoreBusy("The store is being cleaned up. Try again in a minute.") from error
        yield store


@lru_cache(maxsize=16)
def _open(root: Path) -> Store:
    return Store.create(root)
