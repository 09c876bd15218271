"""Fetches models: ``POST /models`` writes PENDING, this claims the row, downloads, converts and settles it.

A lost message costs nothing: beat calls ``fetch_pending``, which also takes over
a fetch whose worker died (its row shows no sign of life any more).
"""

import logging
import shutil
import threading
from datetime import datetime, timedelta
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
from trellis_workers.models.space import count_bytes

log = logging.getLogger(__name__)
_WRITE_INTERVAL_S = 3.0
#: A fetch that was silent for this long has no worker any more.
_LOST_AFTER = timedelta(seconds=90)


def fetch_pending(settings: Settings, database: Database) -> list[str]:
    """Fetch every model that waits, one after the other; return their ids."""
    with database.read() as session:
        model_ids = repository.list_fetchable(session, lost_before=utc_now() - _LOST_AFTER)
    return [model_id for model_id in model_ids if fetch_model(settings, database, model_id=model_id)]


def is_waiting(database: Database, *, model_id: str) -> bool:
    """Tell whether a model waits for a worker."""
    with database.read() as session:
        model = repository.find_model(session, model_id=model_id)
    return model is not None and model.state == ModelState.PENDING


def fetch_model(settings: Settings, database: Database, *, model_id: str) -> bool:
    """Fetch one model unless another worker does; True where this call settled it."""
    with database.write() as session:
        claim = repository.claim_fetch(session, model_id=model_id, lost_before=utc_now() - _LOST_AFTER)
        if claim is None:
            return False
        model = repository.find_model(session, model_id=model_id)
        if model is None:
            return False
        source = dict(model.source)
    folder = service.model_folder(settings, model_id)
    staging = service.staging_folder(settings, model_id)
    log.info("model %s: downloading %s", model_id, source)
    progress = _Progress(database, model_id, claim)
    try:
        with progress:
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
        return _fail(settings, database, progress, reason=str(error))
    except OSError as error:
        return _fail(settings, database, progress, reason=f"Writing failed: {error.strerror}.")
    except OperationalError:
        raise  # it is taken up again when the database is back
    except Exception as error:  # without a reason, the model would be fetched again for ever
        log.exception("model %s: its download failed unexpectedly", model_id)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        return _fail(settings, database, progress, reason=f"Unexpected worker error: {said}")
    with database.write() as session:
        model = progress.find_wanted(session)
        if model is not None:
            model.revision = revision
            service.apply_facts(model, settings, folder=folder, facts=facts)
            session.add(model)
    if model is None:
        return _leave(settings, database, model_id=model_id)
    log.info("model %s is ready: %d parameters", model_id, facts.parameter_count)
    return True


def _fail(settings: Settings, database: Database, progress: "_Progress", *, reason: str) -> bool:
    model_id = progress.model_id
    log.warning("model %s could not be downloaded: %s", model_id, reason)
    with database.write() as session:
        model = progress.find_wanted(session)
        if model is not None:
            service.set_state(model, ModelState.FAILED, reason=reason)
            session.add(model)
    return True if model is not None else _leave(settings, database, model_id=model_id)


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
    """Writes progress to the row while a fetch runs; by it other workers also see that it is alive.

    Each sign of life is a time, which the next one demands: a fetch that was cancelled and started again
    meanwhile is another worker's.
    """

    def __init__(self, database: Database, model_id: str, claim: datetime) -> None:
        self.model_id = model_id
        self._database, self._claim = database, claim
        self._now: FetchProgress | None = None
        self._measured: Path | None = None
        self._is_wanted = True
        self._stop = threading.Event()
        # The fetch and the thread both write.
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"fetch-{model_id}", daemon=True)

    def note(self, stage: FetchStage, *, folder: Path | None = None, total_bytes: int | None = None) -> None:
        """Enter a stage; a download is measured by the bytes below ``folder``."""
        self._now, self._measured = FetchProgress(stage=stage, total_bytes=total_bytes), folder
        self._write()

    def require_wanted(self) -> None:
        """Raise ``FetchCancelled`` once the fetch was cancelled, or its model deleted."""
        if not self._is_wanted:
            raise FetchCancelled

    def find_wanted(self, session: Session) -> Model | None:
        """Return the model, held, while this fetch of it is wanted.

        None once it was cancelled, also where it was started again, or the model deleted.
        """
        model = repository.lock_model(session, model_id=self.model_id)
        if model is None or model.state != ModelState.FETCHING or model.state_changed_at != self._claim:
            return None
        return model

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
                log.exception("model %s: progress could not be written", self.model_id)

    def _write(self) -> None:
        now, folder = self._now, self._measured
        if now is not None and folder is not None:
            now = now.model_copy(update={"done_bytes": count_bytes(folder)})
        with self._writing:
            with self._database.write() as session:
                claim = repository.touch_fetch(
                    session, model_id=self.model_id, claim=self._claim, progress=now
                )
            self._is_wanted, self._claim = claim is not None, claim or self._claim
