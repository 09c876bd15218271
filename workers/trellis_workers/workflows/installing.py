"""Installs the requirements of workflows: ``POST /workflows`` writes a row, this claims it, a child runs pip.

The same requirements are installed once, into a folder that their hash names. A lost message costs nothing:
the sweep finds what waits, and begins anew what a dead worker left behind.
"""

import json
import logging
import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.redaction import redact
from trellis_api.core.settings import Settings
from trellis_api.workflows import repository
from trellis_api.workflows.folders import FOLDER, INSTALLED_FILE, package_folder, packages_cache
from trellis_contracts.workflow_states import WorkflowState
from trellis_recipes.workflows.package import REQUIREMENTS_FILE

from trellis_workers.environments.child import ChildFailed, NotWantedError, Order, run_child

log = logging.getLogger(__name__)
#: One that is installed shows a sign of life twice a second.
LOST_AFTER = timedelta(seconds=60)
#: A folder without a row may belong to a request that is not committed yet.
_ORPHAN_AFTER_S = 3600.0
_MODULE = "trellis_train.agents.tune.requirements"
#: pip's own time is bounded by the child; this is for its end.
_GRACE_S = 30.0
_MAX_REASON = 2000
WORK_FOLDER = "run/workflow-installs"


def install_waiting(settings: Settings, database: Database) -> list[str]:
    """Install for every workflow that waits, one after the other; their ids."""
    lost_before = utc_now() - LOST_AFTER
    with database.read() as session:
        waiting = repository.list_waiting(session, lost_before=lost_before)
    done = []
    for workflow_id in waiting:
        with database.write() as session:
            is_ours = repository.claim(session, workflow_id=workflow_id, lost_before=lost_before)
        if is_ours:
            _install(settings, database, workflow_id)
            done.append(workflow_id)
    return done


def remove_orphans(settings: Settings, database: Database) -> None:
    """Remove folders that belong to no workflow: their request was not committed."""
    parent = settings.data_root / FOLDER
    before = time.time() - _ORPHAN_AFTER_S
    folders = [each for each in parent.iterdir() if each.stat().st_mtime < before] if parent.is_dir() else []
    if not folders:
        return
    with database.read() as session:
        known = repository.list_known(session, workflow_ids=[each.name for each in folders])
    for folder in folders:
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def remove_unused_packages(settings: Settings, database: Database) -> None:
    """Remove what was installed for requirements that no workflow has any more."""
    cache = packages_cache(settings)
    before = time.time() - _ORPHAN_AFTER_S
    lists = [each for each in cache.glob(f"*/{INSTALLED_FILE}") if each.stat().st_mtime < before]
    if not lists:
        return
    with database.read() as session:
        wanted = repository.list_requirements(session)
    for file in lists:
        if tuple(json.loads(file.read_bytes())["requirements"]) not in wanted:
            log.info("removed packages that no workflow needs: %s", file.parent.name)
            shutil.rmtree(file.parent, ignore_errors=True)


def _install(settings: Settings, database: Database, workflow_id: str) -> None:
    folder = settings.data_root / WORK_FOLDER / workflow_id
    try:
        folder.mkdir(parents=True, exist_ok=True)
        installed = _run(settings, database, workflow_id, folder)
        _settle(database, workflow_id, installed=installed)
    except NotWantedError:
        log.info("workflow %s was deleted while its packages were installed", workflow_id)
    except ChildFailed as error:
        _settle(database, workflow_id, reason=str(error))
    except OSError as error:
        _settle(database, workflow_id, reason=f"The packages cannot be written: {error}")
    except Exception as error:  # the edge of the process: it must not look as if the worker had died
        log.exception("the requirements of workflow %s could not be installed", workflow_id)
        _settle(database, workflow_id, reason=f"Unexpected worker error: {type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(settings: Settings, database: Database, workflow_id: str, folder: Path) -> list[str]:
    def is_wanted() -> bool:
        with database.write() as session:
            return repository.touch(session, workflow_id=workflow_id)

    requirements = package_folder(settings, workflow_id) / REQUIREMENTS_FILE
    timeout_s = settings.workflow_install_timeout_s
    arguments = [
        "install", str(requirements), str(packages_cache(settings)),
        "--timeout", str(timeout_s), "--max-bytes", str(settings.workflow_packages_bytes),
    ]  # fmt: skip
    # pip's own settings, credentials of an index included, come from its files and variables.
    kept = tuple(name for name in os.environ if name.startswith("PIP_"))
    order = Order(arguments, folder, timeout_s + _GRACE_S, module=_MODULE, kept=kept)
    answer = run_child(settings, order, is_wanted=is_wanted)
    packages: list[str] = json.loads(answer.read_bytes())["packages"]
    return packages


def _settle(
    database: Database, workflow_id: str, *, installed: list[str] | None = None, reason: str | None = None
) -> None:
    """Note how it ended; one that was deleted meanwhile is gone."""
    if reason is not None:
        log.warning("the requirements of workflow %s: %s", workflow_id, redact(reason))
    with database.write() as session:
        repository.settle(
            session,
            workflow_id=workflow_id,
            state=WorkflowState.READY if reason is None else WorkflowState.FAILED,
            installed=installed,
            reason=redact(reason)[:_MAX_REASON] if reason else None,
        )
