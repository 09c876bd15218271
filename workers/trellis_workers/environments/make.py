"""Makes environments: ``POST /environments`` writes a row, this claims it, and a child makes the folder.

A lost message costs nothing: the sweep finds what waits, and begins anew what a dead worker left behind.
The folder is moved into place when it is whole; its rows are imported as datasets by data tasks, and the
environment is ready when they have arrived.
"""

import json
import logging
import os
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError
from trellis_api.core.redaction import redact
from trellis_api.core.settings import Settings
from trellis_api.environments import repository, service
from trellis_api.environments.folder import FOLDER, content_folder, environment_folder, rows_folder
from trellis_api.environments.sources import locate_source
from trellis_contracts.agents import EnvironmentManifest
from trellis_contracts.environments import DATASET_SEPARATOR, MANIFEST_FILE
from trellis_data.reading.sources import SourceUnavailable
from trellis_recipes.environments import environment_kinds

from trellis_workers.environments.child import ChildFailed, NotWantedError, Order, run_child

log = logging.getLogger(__name__)
#: One that is made shows a sign of life twice a second.
LOST_AFTER = timedelta(seconds=60)
#: What loses its worker so often is not begun again.
MAX_ATTEMPTS = 10
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def make_waiting(settings: Settings, database: Database) -> list[str]:
    """Make every environment that waits, one after the other; their ids."""
    lost_before = utc_now() - LOST_AFTER
    with database.read() as session:
        waiting = repository.list_waiting(session, lost_before=lost_before)
    made = []
    for environment_id in waiting:
        with database.write() as session:
            attempt = repository.claim_environment(
                session, environment_id=environment_id, lost_before=lost_before
            )
        if attempt is not None:
            _make(settings, database, environment_id, attempt)
            made.append(environment_id)
    return made


def take_in_waiting(settings: Settings, database: Database) -> None:
    """Let environments become ready whose rows have arrived, and remove folders of deleted ones."""
    with database.read() as session:
        awaiting = repository.list_awaiting_rows(session)
    for environment_id in awaiting:
        with database.write() as session:
            service.take_in(session, environment_id=environment_id)
    _remove_orphans(settings, database)


def _make(settings: Settings, database: Database, environment_id: str, attempt: int) -> None:
    try:
        if attempt > MAX_ATTEMPTS:
            raise ChildFailed("The workers crashed repeatedly while creating it.", "worker_lost")
        manifest = _make_folder(settings, database, environment_id, attempt)
        with database.write() as session:
            service.record_files(
                session, settings, environment_id=environment_id, attempt=attempt, manifest=manifest
            )
    except NotWantedError:
        log.info("environment %s was deleted while it was created", environment_id)
    except ChildFailed as error:
        _fail(database, environment_id, attempt, str(error), error.cause)
    except OSError as error:
        reason = f"The environment's folder is not writable: {error}"
        _fail(database, environment_id, attempt, reason, "storage_unwritable")
    except Exception as error:  # the edge of the process: it must not look as if the worker had died
        log.exception("environment %s failed unexpectedly", environment_id)
        reason = f"Unexpected worker error: {type(error).__name__}: {error}"
        _fail(database, environment_id, attempt, reason, "worker_failed")


def _make_folder(
    settings: Settings, database: Database, environment_id: str, attempt: int
) -> EnvironmentManifest:
    with database.read() as session:
        environment = service.get_environment(session, environment_id=environment_id)
        kind, parameters = environment.kind, environment.parameters
    root = environment_folder(settings, environment_id)
    shutil.rmtree(root, ignore_errors=True)
    draft = root / "making"
    draft.mkdir(parents=True)

    def is_wanted() -> bool:
        with database.write() as session:
            return repository.touch_environment(session, environment_id=environment_id, attempt=attempt)

    files = _lay_sources(settings, root / "sources", kind, parameters)
    options = ("--parameters", json.dumps(parameters), "--files", json.dumps(files))
    arguments = ["make", kind, str(draft), *options]
    order = Order(arguments, root, settings.environment_timeout_s)
    run_child(settings, order, is_wanted=is_wanted)
    manifest = _read_manifest(draft)
    shutil.rmtree(root / "sources", ignore_errors=True)
    content = content_folder(settings, environment_id)
    draft.rename(content)
    _lay_out_rows(content, rows_folder(settings, environment_id), manifest)
    return manifest


def _lay_sources(settings: Settings, folder: Path, kind: str, parameters: dict[str, Any]) -> dict[str, str]:
    """Locate the files that the parameters name; an upload gets the suffix that says how to read it."""
    places = {}
    for name, wanted in environment_kinds()[kind].wanted_sources(parameters).items():
        try:
            place, filename = locate_source(settings, parameters[name], wanted)
        except (SourceUnavailable, DomainError) as error:
            raise ChildFailed(f"'{name}': {error.message}", error.code) from error
        if filename is not None:
            folder.mkdir(exist_ok=True)
            link = folder / f"{name}{Path(filename).suffix.lower()}"
            link.symlink_to(place)
            place = str(link)
        places[name] = place
    return places


def _read_manifest(folder: Path) -> EnvironmentManifest:
    try:
        return EnvironmentManifest.model_validate_json((folder / MANIFEST_FILE).read_bytes())
    except (OSError, ValidationError) as error:
        raise ChildFailed(f"The environment's manifest cannot be read: {error}", "no_result") from error


def _lay_out_rows(content: Path, rows: Path, manifest: EnvironmentManifest) -> None:
    """Lay out a folder for each dataset, with a file for each split: links to the environment's files."""
    for name, file in manifest.datasets.items():
        dataset, _, split = name.rpartition(DATASET_SEPARATOR)
        source = (content / file).resolve()
        is_plain = all(_PART.fullmatch(part) for part in (dataset or "main", split))
        if not is_plain or not source.is_relative_to(content.resolve()) or not source.is_file():
            raise ChildFailed(f"The environment's manifest lists missing rows: {name}: {file}.", "no_result")
        target = rows / (dataset or "main") / f"{split}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)


def _remove_orphans(settings: Settings, database: Database) -> None:
    """Remove folders without an environment: it was deleted while being made."""
    parent = settings.data_root / FOLDER
    # The folders first: one that comes later belongs to an environment that is there.
    folders = [each for each in parent.iterdir() if each.is_dir()] if parent.is_dir() else []
    if not folders:
        return
    with database.read() as session:
        known = repository.list_known(session, environment_ids=[each.name for each in folders])
    for folder in folders:
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def _fail(database: Database, environment_id: str, attempt: int, reason: str, cause: str) -> None:
    log.warning("environment %s could not be created: %s", environment_id, reason)
    with database.write() as session:
        service.record_failure(
            session, environment_id=environment_id, attempt=attempt, reason=redact(reason), cause=cause
        )
