"""Fetches models: ``POST /models`` writes PENDING, this claims the row, downloads, converts and settles it.

A lost message costs nothing: beat calls ``fetch_pending``, which also takes over
a fetch whose worker died (its row shows no sign of life any more).
"""

import contextlib
import logging
import shutil
import stat
import threading
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy.exc import OperationalError
from sqlmodel import Session
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.models import repository, service
from trellis_api.models.inspection import OutsideRoot, UnusableFolder, inspect_folder
from trellis_api.models.models import Model
from trellis_api.models.schemas import FetchProgress, FetchStage, ModelState

from trellis_workers.models.child import FetchCancelled
from trellis_workers.models.hub import FetchFailed
from trellis_workers.models.sources import bring

log = logging.getLogger(__name__)
_WRITE_INTERVAL_S = 3.0
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
        source = dict(model.source)
    folder = service.model_folder(settings, model_id)
    staging = service.staging_folder(settings, model_id)
    log.info("model %s: downloading %s", model_id, source)
    try:
        with _Progress(database, model_id) as progress:
            revision = bring(
                settings,
                source,
                folder=folder,
                staging=staging,
                report=progress.note,
                require_wanted=progress.require_wanted,
            )
            progress.note(FetchStage.INSPECTING)
            progress.require_wanted()
            facts = inspect_folder(folder, root=settings.data_root)
    except FetchCancelled:
        return _leave(settings, database, model_id=model_id)
    except (FetchFailed, UnusableFolder, OutsideRoot) as error:
        return _fail(settings, database, model_id=model_id, reason=str(error))
    except OSError as error:
        return _fail(settings, database, model_id=model_id, reason=f"Writing failed: {error.strerror}.")
    except OperationalError:
        raise  # it is taken up again when the database is back
    except Exception as error:  # without a reason, the model would be fetched again for ever
        log.exception("model %s: its download failed unexpectedly", model_id)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        return _fail(settings, database, model_id=model_id, reason=f"Unexpected worker error: {said}")
    with database.write() as session:
        model = _find_wanted(session, model_id)
        if model is not None:
            model.revision = revision
            service.apply_facts(model, settings, folder=folder, facts=facts)
            session.add(model)
    if model is None:
        return _leave(settings, database, model_id=model_id)
    log.info("model %s is ready: %d parameters", model_id, facts.parameter_count)
    return True


def _fail(settings: Settings, database: Database, *, model_id: str, reason: str) -> bool:
    log.warning("model %s could not be downloaded: %s", model_id, reason)
    with database.write() as session:
        model = _find_wanted(session, model_id)
        if model is not None:
            service.set_state(model, ModelState.FAILED, reason=reason)
            session.add(model)
    return True if model is not None else _leave(settings, database, model_id=model_id)


def _find_wanted(session: Session, model_id: str) -> Model | None:
    """Return the model, held, while its fetch is wanted; None once it was cancelled or the model deleted."""
    model = repository.lock_model(session, model_id=model_id)
    return model if model is not None and model.state == ModelState.FETCHING else None


def _leave(settings: Settings, database: Database, *, model_id: str) -> bool:
    """Leave what a cancelled fetch has brought to a retry; what is there of a deleted model goes."""
    with database.read() as session:
        is_there = repository.find_model(session, model_id=model_id) is not None
    log.info(
        "model %s: its download was %s", model_id, "cancelled" if is_there else "given up: it is deleted"
    )
    if not is_there:
        for folder in (service.model_folder(settings, model_id), service.staging_folder(settings, model_id)):
            shutil.rmtree(folder, ignore_errors=True)
    return True


class _Progress:
    """Writes progress to the row while a fetch runs; by it other workers also see that it is alive."""

    def __init__(self, database: Database, model_id: str) -> None:
        self._database, self._model_id = database, model_id
        self._now: FetchProgress | None = None
        self._measured: Path | None = None
        self._is_wanted = True
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"fetch-{model_id}", daemon=True)

    def note(self, stage: FetchStage, *, folder: Path | None = None, total_bytes: int | None = None) -> None:
        """Enter a stage; a download is measured by the bytes below ``folder``."""
        self._now, self._measured = FetchProgress(stage=stage, total_bytes=total_bytes), folder
        self._write()

    def require_wanted(self) -> None:
        """Raise ``FetchCancelled`` once the fetch was cancelled, or its model deleted."""
        if not self._is_wanted:
            raise FetchCancelled

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_WRITE_INTERVAL_S):
            try:
                self._write()
            except Exception:  # the edge of a thread that must not end
                log.exception("model %s: progress could not be written", self._model_id)

    def _write(self) -> None:
        now, folder = self._now, self._measured
        if now is not None and folder is not None:
            now = now.model_copy(update={"done_bytes": _count_bytes(folder)})
        with self._database.write() as session:
            self._is_wanted = repository.touch_fetch(session, model_id=self._model_id, progress=now)


def _count_bytes(folder: Path) -> int:
    """Count the bytes of the files below a folder; those that vanish meanwhile do not count."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total
