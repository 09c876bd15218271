"""Carries out dry runs of rewards: ``POST /rewards/dry-runs`` writes a row, this claims it and settles it.

The scoring is a child process with a time limit; code of persons runs in a sandbox inside it. A lost
message costs nothing: the sweep finds what waits, and settles what a dead worker left behind.
"""

import logging
import os
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from pydantic import ValidationError
from sqlmodel import Session
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError
from trellis_api.core.redaction import redact
from trellis_api.core.settings import Settings
from trellis_api.datasets.view import view
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.rollouts.pages import arrange
from trellis_api.rewards import repository, service
from trellis_api.rewards.models import DryRun
from trellis_api.rewards.resources import FoundResources, as_terms, find_resources
from trellis_contracts.attempt import ISOLATION_FILE, TEMPORARY_FOLDER
from trellis_contracts.dry_run import (
    EXIT_BAD_REQUEST,
    PROGRESS_FILE,
    REQUEST_FILE,
    RESULT_FILE,
    DryRunProgress,
    DryRunResult,
    DryRunState,
    DryRunTask,
    RecordedRollout,
)
from trellis_contracts.isolation import EXIT_NOT_ISOLATED, isolated_command
from trellis_contracts.private_files import write_private
from trellis_contracts.rewards import RewardResources

from trellis_workers.core.child_environment import plain_environment
from trellis_workers.core.isolation import make_rules
from trellis_workers.core.last_lines import last_lines
from trellis_workers.jobs.isolation import inputs_of_rewards
from trellis_workers.jobs.reward_files import copy_resources

log = logging.getLogger(__name__)
_POLL_S = 0.5
#: A running dry run shows a sign of life at every poll.
_LOST_AFTER = timedelta(seconds=60)
_MAX_REASON = 500
FOLDER = "run/dry-runs"


def run_waiting(settings: Settings, database: Database) -> list[str]:
    """Carry out every dry run that waits, one after the other; their ids."""
    with database.read() as session:
        waiting = repository.list_waiting_dry_runs(session, lost_before=utc_now() - _LOST_AFTER)
    for dry_run_id in waiting:
        run(settings, database, dry_run_id=dry_run_id)
    return list(waiting)


def run(settings: Settings, database: Database, *, dry_run_id: str) -> None:
    """Carry out one dry run unless another worker does, or settle it where that worker has died."""
    with database.write() as session:
        is_ours = repository.claim_dry_run(session, dry_run_id=dry_run_id)
    if not is_ours:
        _settle_lost(database, dry_run_id)
        return
    folder = settings.data_root / FOLDER / dry_run_id
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True, mode=0o700)
        with database.read() as session:
            task, found = _describe(session, settings, dry_run_id)
        resources = copy_resources(folder, found)
        complete = task.model_copy(update={"resources": resources})
        write_private(folder / REQUEST_FILE, complete.model_dump_json())
        rules = make_rules(
            settings,
            [*complete.data.paths, *inputs_of_rewards(resources)],
            writable=[folder],
            locked=[folder / REQUEST_FILE, folder / ISOLATION_FILE],
            temporary=folder / TEMPORARY_FOLDER,
        )
        rules.write(folder / ISOLATION_FILE)
        _watch(settings, database, dry_run_id, folder)
    except DomainError as error:
        _settle(database, dry_run_id, reason=error.message, cause=error.code)
    except OSError as error:
        _settle(
            database, dry_run_id, reason=f"Its folder cannot be written: {error}", cause="storage_unwritable"
        )
    except Exception as error:  # the edge of the process: it must not look as if the worker had died
        log.exception("dry run %s failed unexpectedly", dry_run_id)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        reason = f"Unexpected worker error: {said}"
        _settle(database, dry_run_id, reason=reason, cause="worker_failed")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _describe(session: Session, settings: Settings, dry_run_id: str) -> tuple[DryRunTask, FoundResources]:
    dry_run = service.get_dry_run(session, dry_run_id=dry_run_id)
    terms = as_terms(dry_run.rewards)
    dataset = view(
        session,
        settings,
        dataset_id=dry_run.dataset_id,
        revision=dry_run.dataset_version,
        split=dry_run.dataset_split,
    )
    task = DryRunTask(
        rewards=terms,
        resources=RewardResources(),
        data=dataset.as_source(*service.read_dataset(dataset, dry_run.columns)),
        row_count=dry_run.row_count,
        seed=dry_run.seed,
        rollouts=_read_rollouts(session, dry_run),
    )
    return task, find_resources(session, settings, terms=terms, field_name="rewards")


def _read_rollouts(session: Session, dry_run: DryRun) -> list[RecordedRollout]:
    if dry_run.job_id is None or dry_run.step is None:
        return []
    marks = rollout_store.list_marks(session, job_id=dry_run.job_id, step=dry_run.step, split="train")
    samples = rollout_store.read(session, ids=[mark.id for _, mark in arrange(marks)])
    return [
        RecordedRollout(prompt=each.prompt, response=each.response, answer=each.ground_truth or "")
        for each in samples
    ]


def _watch(settings: Settings, database: Database, dry_run_id: str, folder: Path) -> None:
    """Run the child to its end, to its time limit, or until the dry run is cancelled."""
    python = str(settings.job_python or sys.executable)
    command = [python, "-m", "trellis_train.rewards.dry_run", str(folder)]
    deadline = time.monotonic() + settings.dry_run_timeout_s
    with (folder / "log").open("wb") as errors:
        child = subprocess.Popen(  # noqa: S603 - our own module
            isolated_command(python, folder / ISOLATION_FILE, command),
            stdin=subprocess.PIPE,  # it leaves when this end closes, whatever becomes of us
            stdout=errors,
            stderr=errors,
            env=plain_environment(),
            cwd=folder,
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                if not _report(database, dry_run_id, folder):
                    log.info("dry run %s: stopped by request", dry_run_id)
                    return
                if time.monotonic() > deadline:
                    reason = f"Timed out after {settings.dry_run_timeout_s:g} s."
                    _settle(database, dry_run_id, reason=reason, cause="time_limit")
                    return
                try:
                    child.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            _end(child)
    _report(database, dry_run_id, folder)
    _take_result(database, dry_run_id, folder, child.returncode)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    if child.poll() is None:
        os.killpg(child.pid, 9)
        child.wait()


def _report(database: Database, dry_run_id: str, folder: Path) -> bool:
    """Note progress; False where nobody wants the dry run any more."""
    path = folder / PROGRESS_FILE
    progress = DryRunProgress.model_validate_json(path.read_bytes()) if path.exists() else DryRunProgress()
    with database.write() as session:
        return repository.advance_dry_run(
            session, dry_run_id=dry_run_id, done=progress.done, total=progress.total
        )


def _take_result(database: Database, dry_run_id: str, folder: Path, exit_code: int) -> None:
    if exit_code == 0:
        try:
            result = DryRunResult.model_validate_json((folder / RESULT_FILE).read_bytes())
        except (OSError, ValidationError) as error:
            reason = f"The dry run's result cannot be read: {error}"
            _settle(database, dry_run_id, reason=reason, cause="no_result")
            return
        _settle(database, dry_run_id, result=result)
        return
    lines = last_lines(folder / "log", 20)
    said = lines[-1].strip() if lines else ""
    known = {EXIT_BAD_REQUEST: "bad_request", EXIT_NOT_ISOLATED: "isolation_unavailable"}
    if exit_code in known:
        _settle(database, dry_run_id, reason=said, cause=known[exit_code])
        return
    log.error("dry run %s: exit code %d: %s", dry_run_id, exit_code, "\n".join(lines))
    _settle(database, dry_run_id, reason=said or f"It left with exit code {exit_code}.", cause="crashed")


def _settle_lost(database: Database, dry_run_id: str) -> None:
    """Settle one whose worker has died; one that another worker has just taken goes on."""
    with database.read() as session:
        dry_run = repository.find_dry_run(session, dry_run_id=dry_run_id)
    touched_at = dry_run.touched_at if dry_run is not None else None
    if touched_at is not None and touched_at < utc_now() - _LOST_AFTER:
        _settle(database, dry_run_id, reason="The worker that carried it out has died.", cause="worker_lost")


def _settle(
    database: Database,
    dry_run_id: str,
    *,
    result: DryRunResult | None = None,
    reason: str | None = None,
    cause: str | None = None,
) -> None:
    """Note how it ended; one that was cancelled meanwhile stays so."""
    state = DryRunState.FAILED if result is None else DryRunState.SUCCEEDED
    reason = redact(reason)[:_MAX_REASON] if reason else None
    with database.write() as session:
        dry_run = repository.find_dry_run(session, dry_run_id=dry_run_id)
        if dry_run is not None and dry_run.state == DryRunState.RUNNING:
            service.settle_dry_run(
                session, dry_run=dry_run, state=state, result=result, reason=reason, cause=cause
            )
