"""Carries out calls of tools that persons try by hand, each in a child with a limit on its time."""

import json
import logging
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.redaction import redact, redact_tree
from trellis_api.core.settings import Settings
from trellis_api.core.texts import shorten, storable_tree
from trellis_api.environments import repository
from trellis_api.environments.folder import content_folder
from trellis_api.environments.models import EnvironmentCall
from trellis_contracts.environments import CallAnswer, ToolCallState

from trellis_workers.environments.child import ChildFailed, NotWantedError, Order, run_child

log = logging.getLogger(__name__)
FOLDER = "run/tool-calls"
#: A call takes less; one that says that it runs for longer has lost its worker.
_LOST_AFTER = timedelta(seconds=60)
#: Of an answer that is kept, as JSON.
MAX_CHARACTERS = 200_000
_MAX_REASON = 500


def call_waiting(settings: Settings, database: Database) -> list[str]:
    """Carry out every call that waits, one after the other, and settle those that were lost; their ids."""
    with database.read() as session:
        found = repository.list_open_calls(session)
    lost_after = _LOST_AFTER + timedelta(seconds=settings.tool_call_timeout_s)
    for call in found:
        if call.state == ToolCallState.QUEUED:
            _carry_out(settings, database, call)
        elif call.started_at is not None and call.started_at < utc_now() - lost_after:
            _settle(database, call.id, reason="The worker that carried it out has died.", cause="worker_lost")
    return [call.id for call in found]


def _carry_out(settings: Settings, database: Database, call: EnvironmentCall) -> None:
    with database.write() as session:
        if not repository.claim_call(session, call_id=call.id):
            return
    folder = settings.data_root / FOLDER / call.id
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True, mode=0o700)
        _settle(database, call.id, answer=_ask(settings, database, call, folder))
    except NotWantedError:
        log.info("call %s was cancelled", call.id)
    except ChildFailed as error:
        _settle(database, call.id, reason=str(error), cause=error.cause)
    except OSError as error:
        reason = f"The call's folder is not writable: {error}"
        _settle(database, call.id, reason=reason, cause="storage_unwritable")
    except Exception as error:  # the edge of the process: it must not look as if the worker had died
        log.exception("call %s failed unexpectedly", call.id)
        reason = f"Unexpected worker error: {type(error).__name__}: {error}"
        _settle(database, call.id, reason=reason, cause="worker_failed")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ask(settings: Settings, database: Database, call: EnvironmentCall, folder: Path) -> CallAnswer:
    def is_wanted() -> bool:
        with database.read() as session:
            return (
                repository.find_call(session, environment_id=call.environment_id, call_id=call.id) is not None
            )

    environment = content_folder(settings, call.environment_id)
    arguments = ["call", str(environment), call.tool, json.dumps(call.arguments, ensure_ascii=False)]
    order = Order(arguments, folder, settings.tool_call_timeout_s)
    path = run_child(settings, order, is_wanted=is_wanted)
    try:
        return CallAnswer.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ChildFailed(f"The call's result cannot be read: {error}", "no_result") from error


def _settle(
    database: Database,
    call_id: str,
    *,
    answer: CallAnswer | None = None,
    reason: str | None = None,
    cause: str | None = None,
) -> None:
    """Note how it ended; one whose environment was deleted meanwhile is gone."""
    with database.write() as session:
        call = session.get(EnvironmentCall, call_id)
        if call is None or call.state != ToolCallState.RUNNING:
            return
        call.state = (ToolCallState.FAILED if answer is None else ToolCallState.SUCCEEDED).value
        call.answer = _bound(answer) if answer is not None else None
        call.reason = redact(reason)[:_MAX_REASON] if reason else None
        call.cause, call.finished_at = cause, utc_now()
        session.add(call)


def _bound(answer: CallAnswer) -> dict[str, Any]:
    """Redact secrets and bound the size: a result beyond the limit becomes the beginning of its text."""
    tree: dict[str, Any] = redact_tree(storable_tree(answer.model_dump(mode="json")))
    text = json.dumps(tree["result"], ensure_ascii=False)
    return tree if len(text) <= MAX_CHARACTERS else {**tree, "result": shorten(text, limit=MAX_CHARACTERS)}
