"""Fetches hub models: ``POST /models`` writes PENDING, this claims the row, downloads and settles it.

A lost message costs nothing: beat calls ``fetch_pending``, which also takes over
a fetch whose worker died (its row shows no sign of life any more).
"""

import logging
import shutil
import threading
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.models import repository, service
from trellis_api.models.inspection import OutsideRoot, UnusableFolder, inspect_folder
from trellis_api.models.schemas import ModelState

from trellis_workers.models.hub import FetchFailed, Hub

log = logging.getLogger(__name__)
_SIGN_INTERVAL_S = 15.0
#: A fetch that was silent for this long has no worker any more.
_LOST_AFTER = timedelta(seconds=90)


def fetch_pending(settings: Settings, database: Database) -> list[str]:
    """Fetch every model that waits, one after the other; return their ids."""
    with database.read() as session:
        model_ids = repository.list_fetchable(session, lost_before=utc_now() - _LOST_AFTER)
    return [model_id for model_id in model_ids if fetch_model(settings, database, model_id=model_id)]


def fetch_model(settings: Settings, database: Database, *, model_id: str) -> bool:
    """Fetch one model unless another worker does; True where this call settled it."""
    with database.write() as session:
        if not repository.claim_fetch(session, model_id=model_id, lost_before=utc_now() - _LOST_AFTER):
            return False
        model = repository.find_model(session, model_id=model_id)
        if model is None:
            return False
        repo_id, revision = str(model.source["repo_id"]), str(model.source["revision"])
    folder = service.model_folder(settings, model_id)
    log.info("model %s: fetching %s at %s", model_id, repo_id, revision)
    try:
        with _SignsOfLife(database, model_id):
            commit = _download(settings, repo_id, revision, folder)
            facts = inspect_folder(folder, root=settings.data_root)
    except (FetchFailed, UnusableFolder, OutsideRoot) as error:
        return _fail(settings, database, model_id=model_id, reason=str(error))
    except OSError as error:
        return _fail(settings, database, model_id=model_id, reason=f"Writing failed: {error.strerror}.")
    with database.write() as session:
        model = repository.find_model(session, model_id=model_id)
        if model is not None:
            model.revision = commit
            service.apply_facts(model, settings, folder=folder, facts=facts)
            session.add(model)
    if model is None:
        _discard_deleted(folder, model_id)
    else:
        log.info("model %s is ready: %d parameters", model_id, facts.parameter_count)
    return True


def _download(settings: Settings, repo_id: str, revision: str, folder: Path) -> str:
    hub = Hub()
    snapshot = hub.resolve(repo_id, revision)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free - snapshot.size_bytes < settings.min_free_disk_bytes:
        raise FetchFailed(
            f"The model has {snapshot.size_bytes} bytes, but only {free} are free under the data root."
        )
    hub.download(repo_id, snapshot.commit, folder)
    return snapshot.commit


def _fail(settings: Settings, database: Database, *, model_id: str, reason: str) -> bool:
    log.warning("model %s was not fetched: %s", model_id, reason)
    with database.write() as session:
        model = repository.find_model(session, model_id=model_id)
        if model is not None:
            service.set_state(model, ModelState.FAILED, reason=reason)
            session.add(model)
    if model is None:
        _discard_deleted(service.model_folder(settings, model_id), model_id)
    return True


def _discard_deleted(folder: Path, model_id: str) -> None:
    log.info("model %s was deleted while it was fetched", model_id)
    shutil.rmtree(folder, ignore_errors=True)


class _SignsOfLife:
    """Touches the row while a download runs, so that no other worker takes it over."""

    def __init__(self, database: Database, model_id: str) -> None:
        self._database = database
        self._model_id = model_id
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"fetch-{model_id}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_SIGN_INTERVAL_S):
            try:
                with self._database.write() as session:
                    repository.touch_fetch(session, model_id=self._model_id)
            except Exception:  # the edge of a thread that must not end
                log.exception("model %s: no sign of life could be given", self._model_id)
