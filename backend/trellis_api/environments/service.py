"""Decides about environments.

create                                             QUEUED
→ trellis_workers/environments/make.py             MAKING; ``trellis_train.agents.environments make``
→ record_files                                     its rows are imported as datasets by data tasks
→ trellis_workers/environments/make.py::take_in    READY when they have arrived, or FAILED
"""

import hashlib
import json
import logging

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session
from trellis_contracts.agents import EnvironmentManifest
from trellis_contracts.data_tasks import ImportTask, PathSource
from trellis_contracts.environments import DATASET_SEPARATOR, EnvironmentState, ToolCallState
from trellis_recipes.environments import check_parameters

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.core.texts import MAX_NAME_CHARACTERS
from trellis_api.core.transaction_files import remove_after_commit
from trellis_api.data_tasks import service as data_tasks
from trellis_api.datasets import repository as datasets
from trellis_api.datasets import service as datasets_service
from trellis_api.datasets.schemas import DatasetOrigin
from trellis_api.datasets.states import DatasetState
from trellis_api.environments import repository, uses
from trellis_api.environments.errors import (
    EnvironmentInUse,
    EnvironmentNameTaken,
    EnvironmentNotFound,
    EnvironmentNotReady,
    EnvironmentNotRetryable,
    InvalidEnvironment,
    ToolCallNotFound,
    UnknownTool,
)
from trellis_api.environments.folder import environment_folder, rows_folder
from trellis_api.environments.models import Environment, EnvironmentCall
from trellis_api.environments.presentation import present, present_all, present_call
from trellis_api.environments.schemas import (
    EnvironmentCreate,
    EnvironmentRead,
    ToolCallCreate,
    ToolCallRead,
)
from trellis_api.environments.sources import find_source_issues

log = logging.getLogger(__name__)
#: Calls of an environment that are kept.
KEPT_CALLS = 200
_MAX_REASON = 2000


def create(session: Session, settings: Settings, *, request: EnvironmentCreate) -> Environment:
    """Queue an environment; everything that is wrong with the request raises here."""
    parameters, issues = check_parameters(request.kind, request.parameters)
    issues = issues or find_source_issues(settings, request.kind, parameters)
    if issues:
        raise InvalidEnvironment(issues[0].message, [issue.model_dump() for issue in issues])
    if repository.find_environment_named(session, name=request.name):
        raise _name_taken(request.name)
    environment = Environment(
        id=new_id(repository.PREFIX), name=request.name, kind=request.kind, parameters=parameters
    )
    try:
        repository.add_environment(session, environment)
    except IntegrityError as error:
        raise _name_taken(request.name) from error
    return environment


def get_environment(session: Session, *, environment_id: str) -> Environment:
    """Return the environment; 404 if there is none."""
    environment = repository.find_environment(session, environment_id=environment_id)
    if environment is None:
        raise EnvironmentNotFound(f"Environment '{environment_id}' not found.")
    return environment


def read(session: Session, *, environment_id: str) -> EnvironmentRead:
    """Read one environment as clients see it."""
    return present(session, get_environment(session, environment_id=environment_id))


def list_page(session: Session, *, cursor: str | None, limit: int) -> Page[EnvironmentRead]:
    """List one page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_environments(session, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=present_all(session, shown), next_cursor=next_cursor)


def retry(session: Session, *, environment_id: str) -> Environment:
    """Make an environment again that could not be made."""
    environment = _lock(session, environment_id)
    if environment.state != EnvironmentState.FAILED:
        raise EnvironmentNotRetryable(
            f"'{environment.name}' is {environment.state}; only failed environments can be retried."
        )
    environment.state = EnvironmentState.QUEUED.value
    environment.reason = environment.cause = None
    environment.manifest = environment.sha256 = None
    environment.started_at = environment.finished_at = environment.touched_at = None
    repository.add_environment(session, environment)
    return environment


def delete(session: Session, settings: Settings, *, environment_id: str) -> None:
    """Forget an environment and its files; refused while something works in it. Its datasets stay."""
    environment = _lock(session, environment_id)
    users = uses.list_uses(session, environment_id=environment_id)
    if users:
        raise EnvironmentInUse(f"'{environment.name}' is used by {', '.join(users)[:500]}.", {"jobs": users})
    repository.delete_environment(session, environment)
    remove_after_commit(session, environment_folder(settings, environment_id))


# -- calls by hand


def start_call(session: Session, *, environment_id: str, request: ToolCallCreate) -> EnvironmentCall:
    """Queue a call of a tool."""
    repository.lock_environment(session, environment_id=environment_id, is_shared=True)
    environment = get_environment(session, environment_id=environment_id)
    if environment.state != EnvironmentState.READY or environment.manifest is None:
        raise EnvironmentNotReady(f"'{environment.name}' is {environment.state}; its tools cannot be called.")
    names = [tool.name for tool in EnvironmentManifest.model_validate(environment.manifest).tools]
    if request.tool not in names:
        message = f"'{environment.name}' has no tool '{request.tool}'; available: {', '.join(names)[:300]}."
        issue = {"code": UnknownTool.code, "field": "tool", "message": message}
        raise UnknownTool(message, [issue])
    call = EnvironmentCall(
        id=new_id(repository.CALL_PREFIX),
        environment_id=environment_id,
        tool=request.tool,
        arguments=request.arguments,
        state=ToolCallState.QUEUED.value,
    )
    repository.add_call(session, call, kept=KEPT_CALLS)
    return call


def read_call(session: Session, *, environment_id: str, call_id: str) -> ToolCallRead:
    """Return a call and its result."""
    get_environment(session, environment_id=environment_id)
    call = repository.find_call(session, environment_id=environment_id, call_id=call_id)
    if call is None:
        raise ToolCallNotFound(f"Call '{call_id}' not found.")
    return present_call(call)


def list_calls(session: Session, *, environment_id: str, limit: int) -> list[ToolCallRead]:
    """List the newest calls."""
    get_environment(session, environment_id=environment_id)
    rows = repository.list_calls(session, environment_id=environment_id, limit=limit)
    return [present_call(row) for row in rows]


# -- what the worker notes


def record_files(
    session: Session, settings: Settings, *, environment_id: str, attempt: int, manifest: EnvironmentManifest
) -> bool:
    """Record the manifest of a finished environment folder and import its rows as datasets.

    False where the environment was deleted or taken by another worker meanwhile. ``rows_folder`` holds the
    rows by then; the datasets are made in this transaction, once.
    """
    environment = repository.lock_environment(session, environment_id=environment_id)
    if environment is None or environment.attempt != attempt or environment.state != EnvironmentState.MAKING:
        return False
    environment.manifest = manifest.model_dump(mode="json")
    environment.sha256 = hash_files(manifest)
    environment.size_bytes = sum(
        path.stat().st_size
        for path in environment_folder(settings, environment_id).rglob("*")
        if path.is_file()
    )
    names = sorted({name.rpartition(DATASET_SEPARATOR)[0] for name in manifest.datasets})
    made = dict(environment.dataset_ids)
    for name in names:
        made[name] = _import_rows(session, settings, environment, name)
    environment.dataset_ids = made
    repository.add_environment(session, environment)
    return True


def hash_files(manifest: EnvironmentManifest) -> str:
    """Compute one hash over all files of an environment."""
    return hashlib.sha256(json.dumps(manifest.sha256, sort_keys=True).encode()).hexdigest()


def _import_rows(session: Session, settings: Settings, environment: Environment, name: str) -> str:
    """Create a dataset that a data task fills with the rows of that name, and return its ID."""
    folder = rows_folder(settings, environment.id) / (name or "main")
    path = folder.relative_to(settings.data_root).as_posix()
    title = f"{environment.name} {name}".strip()[:MAX_NAME_CHARACTERS]
    dataset = datasets_service.add_creating(
        session,
        name=title,
        description=f"Rows of the environment {environment.name}.",
        source=DatasetOrigin(kind="path", name=path),
        is_default_name=True,
    )
    request = ImportTask(source=PathSource(path=path), is_split_by_file=True)
    task = data_tasks.create(session, request=request, dataset_id=dataset.id)
    dataset.task_id = task.id
    datasets.add_dataset(session, dataset)
    return dataset.id


def take_in(session: Session, *, environment_id: str) -> bool:
    """Set READY when all its datasets are, FAILED if one could not be filled; False during the import."""
    environment = repository.lock_environment(session, environment_id=environment_id)
    if environment is None or environment.state != EnvironmentState.MAKING:
        return False
    for name, dataset_id in environment.dataset_ids.items():
        dataset = datasets.find_dataset(session, dataset_id=dataset_id)
        if dataset is None or dataset.state == DatasetState.FAILED:
            problem = "was deleted" if dataset is None else "could not be filled"
            _finish(
                session,
                environment,
                reason=f"The dataset of its {name or 'main'} rows {problem}.",
                cause="environment_rows",
            )
            return True
        if dataset.state != DatasetState.READY:
            return False
    _finish(session, environment)
    return True


def record_failure(session: Session, *, environment_id: str, attempt: int, reason: str, cause: str) -> None:
    """Set FAILED, unless it was deleted or taken by another worker meanwhile."""
    environment = repository.lock_environment(session, environment_id=environment_id)
    if environment is None or environment.attempt != attempt or environment.state != EnvironmentState.MAKING:
        return
    _finish(session, environment, reason=reason, cause=cause)


def _finish(
    session: Session, environment: Environment, *, reason: str | None = None, cause: str | None = None
) -> None:
    state = EnvironmentState.READY if reason is None else EnvironmentState.FAILED
    environment.state, environment.finished_at = state.value, utc_now()
    environment.reason, environment.cause = reason[:_MAX_REASON] if reason else None, cause
    repository.add_environment(session, environment)
    log.info("environment %s is %s", environment.id, state)


def _lock(session: Session, environment_id: str) -> Environment:
    environment = repository.lock_environment(session, environment_id=environment_id)
    if environment is None:
        raise EnvironmentNotFound(f"Environment '{environment_id}' not found.")
    return environment


def _name_taken(name: str) -> EnvironmentNameTaken:
    return EnvironmentNameTaken(f"An environment named '{name}' already exists.", {"name": name})
