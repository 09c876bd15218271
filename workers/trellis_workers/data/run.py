"""Carries out data tasks: ``POST`` writes a row, this claims it, watches its child and settles it.

A lost message costs nothing: the sweep finds what waits, and what a dead worker left behind.
"""

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import ValidationError
from sqlalchemy.exc import OperationalError
from sqlmodel import Session
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import repository, service
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import versions
from trellis_api.datasets.store import open_store
from trellis_api.uploads import storage as uploads
from trellis_contracts.data_tasks import (
    EXIT_BAD_REQUEST,
    EXIT_NO_MEMORY,
    FAILURE_FILE,
    PROGRESS_FILE,
    REQUEST_FILE,
    DataTaskKind,
    DataTaskProgress,
    ImportTask,
    TaskFailure,
    UploadSource,
)
from trellis_contracts.private_files import write_private
from trellis_data.versions.records import StoreProblem
from trellis_data.warm_process import LOG_FILE

from trellis_workers.core.last_lines import last_lines
from trellis_workers.core.processes import STANDSTILL_S
from trellis_workers.data.child import EXIT_NO_ROOM, EXIT_OCCUPIED
from trellis_workers.data.children import STOOD_STILL, Starter, start_process
from trellis_workers.data.describe import describe
from trellis_workers.data.files import Made, read_made, read_result
from trellis_workers.data.leftovers import clear_after

log = logging.getLogger(__name__)
_POLL_S = 0.5
#: Somebody waits for these.
_QUICK_POLL_S = 0.05
_IDLE_POLL_S = 0.2
#: How long the database may be away before the work is given up; another worker takes it then.
_DATABASE_PATIENCE_S = 45.0
NO_ROOM = TaskFailure(
    code="disk_full", message="The disk is full. Free up space in the data root and resume the task."
)


class GivenUp(Exception):
    """Nobody wants the task any more, or another worker has it."""


@dataclass(frozen=True)
class Lane:
    """How tasks are carried out."""

    settings: Settings
    database: Database
    start: Starter = start_process
    #: Whether this worker is asked to leave: its task then waits for another one.
    is_leaving: Callable[[], bool] = lambda: False

    def carry_out(self, task_id: str) -> None:
        """Carry out one task, unless another worker does."""
        with self.database.write() as session:
            task = service.claim(session, task_id=task_id)
        if task is None:
            return
        failure: TaskFailure | None = None
        try:
            self._work(task)
        except GivenUp:
            log.info("data task %s: stopped by request", task.id)
        except DomainError as error:
            failure = TaskFailure(code=error.code, message=error.message)
        except StoreProblem as problem:
            failure = TaskFailure(code=problem.code, message=problem.message)
        except OperationalError:
            raise  # it is taken up again when the database is back
        except OSError as error:
            log.exception("data task %s: its folder", task.id)
            failure = TaskFailure(
                code="storage_unwritable",
                message=f"The task's folder cannot be used: {error.strerror or error}.",
            )
        except Exception as error:  # the edge of the process: it must not look as if the worker had died
            log.exception("data task %s failed unexpectedly", task.id)
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            failure = TaskFailure(code="worker_failed", message=f"Unexpected worker error: {said}")
        if failure is not None:
            self._fail(task, failure)
        clear_after(self.settings, self.database, task.id)

    def _work(self, task: DataTask) -> None:
        settings, folder = self.settings, self.settings.data_task_dir(task.id)
        kind = DataTaskKind(task.kind)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if kind in service.LENGTHY and shutil.disk_usage(folder).free < settings.min_free_disk_bytes:
            return self._fail(task, NO_ROOM)
        with self.database.read() as session:
            described = describe(session, settings, task)
        (folder / PROGRESS_FILE).unlink(missing_ok=True)
        write_private(folder / REQUEST_FILE, described.model_dump_json())
        store = open_store(settings)
        # Shared with the child: what it adds to the store stays until it is published here.
        with (store.root / "writing.lock").open("a") as lock:
            status = self._watch(task, kind, folder, lock)
            if status is not None:
                self._take(task, folder, status)
        return None

    def _watch(self, task: DataTask, kind: DataTaskKind, folder: Path, lock: IO[str]) -> int | None:
        """Stay with the child to its end; None where the task was settled before."""
        is_quick = kind in service.INTERACTIVE
        deadline = time.monotonic() + self.settings.preview_timeout_s if is_quick else None
        contact = _Contact(self.database, task, folder)
        child = self.start(self.settings, kind, folder, lock)
        try:
            while (status := child.wait(_QUICK_POLL_S if is_quick else _POLL_S)) is None:
                contact.keep()
                if self.is_leaving():
                    with self.database.write() as session:
                        service.release(session, task_id=task.id, attempt=task.attempt)
                    return None
                if deadline is not None and time.monotonic() > deadline:
                    seconds = f"{self.settings.preview_timeout_s:g}"
                    self._fail(
                        task, TaskFailure(code="time_limit", message=f"It took longer than {seconds} s.")
                    )
                    return None
        finally:
            child.end()
        contact.keep(at_once=True)
        return status

    def _take(self, task: DataTask, folder: Path, status: int) -> None:
        if status == 0:
            self._publish(task, folder)
            return
        if status == EXIT_OCCUPIED:
            self._step_back(task)
            return
        if status == EXIT_NO_MEMORY:
            self._fail(task, _explain_memory(self.settings))
            return
        failure = _explain(task, folder, status)
        if status < 0 and DataTaskKind(task.kind) in service.LENGTHY:
            self._lose(task, failure)
        else:
            self._fail(task, failure)

    def _publish(self, task: DataTask, folder: Path) -> None:
        """Publish the version and settle the task in one transaction."""
        try:
            result, made = read_result(folder), read_made(folder)
        except (OSError, ValueError, ValidationError) as error:
            failure = TaskFailure(code="no_result", message=f"The task's result cannot be read: {error}")
            self._fail(task, failure)
            return
        with self.database.write() as session:
            held = service.hold(session, task_id=task.id, attempt=task.attempt)
            if held is None:
                raise GivenUp
            if made is not None:
                self._publish_version(session, task, made)
            service.settle(
                session,
                task=held,
                result=result,
                made_version=made.version if made else None,
                made_dataset=made.dataset_id if made else None,
            )
        self._forget_upload(task)

    def _publish_version(self, session: Session, task: DataTask, made: Made) -> None:
        versions.publish(
            session,
            self.settings,
            dataset_id=made.dataset_id,
            branch=made.branch,
            expected=made.expected,
            version=open_store(self.settings).version(made.version),
            origin=made.origin,
            task_id=task.id,
        )

    def _forget_upload(self, task: DataTask) -> None:
        request = service.request_of(task)
        if not isinstance(request, ImportTask) or request.form == "openai":
            return  # what came as a file for fine-tuning stays one, until somebody deletes it
        if isinstance(request.source, UploadSource):
            uploads.remove(self.settings, request.source.upload)

    def _fail(self, task: DataTask, failure: TaskFailure) -> None:
        with self.database.write() as session:
            held = service.hold(session, task_id=task.id, attempt=task.attempt)
            if held is not None:
                service.fail(session, task=held, failure=failure)

    def _step_back(self, task: DataTask) -> None:
        """Put the task back, as another process still works on it: it waits until that one has ended."""
        with self.database.write() as session:
            held = service.hold(session, task_id=task.id, attempt=task.attempt)
            if held is not None:
                service.step_back(session, task=held)

    def _lose(self, task: DataTask, failure: TaskFailure) -> None:
        """Record that the task's process was killed; the work resumes from what is in its folder."""
        with self.database.write() as session:
            held = service.hold(session, task_id=task.id, attempt=task.attempt)
            if held is not None:
                service.lose(session, task=held, failure=failure)


class _Contact:
    """Shows the database signs of life and progress, and hears whether the task is still wanted."""

    def __init__(self, database: Database, task: DataTask, folder: Path) -> None:
        self._database = database
        self._task = task
        self._path = folder / PROGRESS_FILE
        self._shown: DataTaskProgress | None = None
        self._heard = self._tried = time.monotonic()

    def keep(self, *, at_once: bool = False) -> None:
        """Raise ``GivenUp`` where the task is over; a database that is away is waited for."""
        now = time.monotonic()
        if not at_once and now - self._tried < _POLL_S:
            return
        self._tried = now
        progress = self._read()
        news = progress if progress != self._shown else None
        try:
            with self._database.write() as session:
                is_wanted = service.advance(
                    session, task_id=self._task.id, attempt=self._task.attempt, progress=news
                )
        except OperationalError:
            if now - self._heard > _DATABASE_PATIENCE_S:
                raise
            log.warning("data task %s: the database is unreachable", self._task.id)
            return
        if not is_wanted:
            raise GivenUp
        self._heard, self._shown = now, progress

    def _read(self) -> DataTaskProgress | None:
        try:
            return DataTaskProgress.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None


def run_waiting(lane: Lane, kinds: frozenset[DataTaskKind]) -> list[str]:
    """Carry out all tasks of these kinds that wait, also those that come meanwhile; their ids."""
    done: list[str] = []
    while not lane.is_leaving():
        _recover_lost(lane.database)
        with lane.database.read() as session:
            waiting = [each for each in repository.list_waiting(session, kinds=kinds) if each not in done]
        if not waiting:
            break
        lane.carry_out(waiting[0])
        done.append(waiting[0])
    return done


def has_waiting(database: Database, kinds: frozenset[DataTaskKind]) -> bool:
    """Tell whether there is something to do."""
    _recover_lost(database)
    with database.read() as session:
        return bool(repository.list_waiting(session, kinds=kinds))


def _recover_lost(database: Database) -> None:
    """Requeue tasks whose worker has died. Mostly there are none, and nothing is written."""
    with database.read() as session:
        lost = repository.list_lost(session, silent_since=utc_now() - service.LOST_AFTER)
    if lost:
        with database.write() as session:
            service.recover_lost(session)


def linger(lane: Lane, kinds: frozenset[DataTaskKind], *, idle_s: float, at_rest: Callable[[], None]) -> None:
    """Carry out tasks of these kinds, and wait for more until none has come for a time.

    ``at_rest`` is called between tasks, again and again.
    """
    ends = time.monotonic() + idle_s
    while time.monotonic() < ends and not lane.is_leaving():
        if run_waiting(lane, kinds):
            ends = time.monotonic() + idle_s
        at_rest()
        time.sleep(_IDLE_POLL_S)


def _explain_memory(settings: Settings) -> TaskFailure:
    limit = settings.preview_memory_bytes / 1024**3
    message = (
        f"It took more than {limit:.3g} GiB of memory. Choose fewer rows, shorten the longest ones, or raise "
        "TRELLIS_PREVIEW_MEMORY_BYTES."
    )
    return TaskFailure(code="memory_limit", message=message)


def _explain(task: DataTask, folder: Path, status: int) -> TaskFailure:
    if status == EXIT_NO_ROOM:
        return NO_ROOM
    if status == EXIT_BAD_REQUEST:
        try:
            return TaskFailure.model_validate_json((folder / FAILURE_FILE).read_bytes())
        except (OSError, ValidationError):
            log.error("data task %s: its process gave no reason", task.id)
    lines = last_lines(folder / LOG_FILE, 20)
    log.error("data task %s: exit status %d: %s", task.id, status, "\n".join(lines))
    if status == STOOD_STILL:
        message = f"The task's process stood still for {STANDSTILL_S:g} s (stopped, or waiting for a disk)."
        return TaskFailure(code="crashed", message=message)
    if status < 0:
        message = f"The task's process was killed by signal {-status}"
        message += "; signal 9 usually means out of memory." if status == -9 else "."
        return TaskFailure(code="crashed", message=message)
    said = lines[-1].strip() if lines else f"The task's process exited with code {status}."
    return TaskFailure(code="crashed", message=said)
