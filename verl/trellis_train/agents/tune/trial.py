"""Plays sessions of a workflow with a scripted model, in the sandbox, before anything is trained."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from trellis_contracts.workflows import ContextExceeded, Message

from trellis_train.agents.episode.tool_template import OWN, choose_template
from trellis_train.agents.tune.isolation import (
    SANDBOX,
    TIMEOUT,
    RunnerLimits,
    SessionFailed,
    WorkflowRunner,
)
from trellis_train.agents.tune.mapping import THINKING_SETTING, MappedJob, MappedRows
from trellis_train.agents.tune.places import EVAL_KEY, TASKSET_KEY
from trellis_train.agents.tune.program import WorkflowSource, WorkflowUnusable
from trellis_train.agents.tune.row_files import UnreadableRows, convert_rows
from trellis_train.agents.tune.services import NO_SERVICES, Services, ServicesUnusable
from trellis_train.agents.tune.signature import Fault
from trellis_train.agents.tune.tasks import read_task
from trellis_train.agents.unusable import AgentUnusable

#: Rows that are played.
TRIED_ROWS = 3
#: Calls that the scripted model answers in a session: it does not know how to end every workflow.
MAX_REPLIES = 20
_LIMITS = RunnerLimits(runners=1, session_timeout_s=60.0)
_MADE_UP = {
    "raw_prompt": [{"role": "user", "content": "What is 2 + 3?"}],
    "reward_model": {"ground_truth": "5"},
    "data_source": "trial",
    "extra_info": {"split": "train", "question": "What is 2 + 3?"},
}
_TEMPLATE_FILES = ("chat_template.jinja", "tokenizer_config.json")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
#: An argument of each type of JSON Schema.
_EXAMPLES: dict[str, Any] = {
    "string": "text", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}, "null": None,
}  # fmt: skip


class ScriptedModel:
    """Answers without weights: calls the first tool that is offered, then says the task's answer."""

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self.replies = 0
        self.has_tools = False

    async def answer(self, messages: list[Message], tools: list[Message], options: Message) -> Message:
        """Return a scripted reply; ``ContextExceeded`` after a limit, like a real model's full context."""
        if self.replies >= MAX_REPLIES:
            raise ContextExceeded(f"the scripted model has given {MAX_REPLIES} replies")
        self.replies += 1
        self.has_tools = self.has_tools or bool(tools)
        may_call = bool(tools) and options.get("tool_choice") != "none" and messages[-1]["role"] != "tool"
        calls = [_call(tools[0])] if may_call else []
        return {
            "text": "" if calls else self._answer,
            "raw": json.dumps(calls) if calls else self._answer,
            "tool_calls": calls,
            "finish_reason": "tool_calls" if calls else "stop",
            "prompt_tokens": 1,
            "completion_tokens": 1,
        }


def _call(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool.get("function", tool)
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    arguments = {name: _example(properties.get(name) or {}) for name in schema.get("required") or properties}
    return {"id": "call_0", "name": function.get("name"), "arguments": arguments}


def _example(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    return _EXAMPLES.get(kind, "text") if isinstance(kind, str) else "text"


@dataclass(frozen=True)
class Trial:
    """How one session with the scripted model went."""

    failure: SessionFailed | None
    #: Replies that the workflow had got by then.
    replies: int
    #: The workflow offered tools to the model.
    has_tools: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether every session of the task fails: no reply, and no busy machine, has a part in it."""
        return self.failure is not None and not self.replies and self.failure.kind not in (TIMEOUT, SANDBOX)


class ScriptedServices(Services):
    """Tools and hosts as in a training; other models answer from the script."""

    async def _ask(self, _name: str, messages: Any, tools: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        return await ScriptedModel("5").answer(messages, tools, dict(options))


def try_sessions(
    source: WorkflowSource,
    tasks: Sequence[Mapping[str, Any]],
    limits: RunnerLimits = _LIMITS,
    services: Services = NO_SERVICES,
) -> list[Trial]:
    """Play a session for each task; ``WorkflowUnusable`` where the sandbox cannot load the workflow."""
    scripted = ScriptedServices(services.environments, services.auxiliary, {}, services.hosts)
    runner = WorkflowRunner(source, limits, scripted)
    try:
        runner.check()
        return asyncio.run(_play(runner, tasks))
    finally:
        runner.close()


async def _play(runner: WorkflowRunner, tasks: Sequence[Mapping[str, Any]]) -> list[Trial]:
    trials = []
    for task in tasks:
        model = ScriptedModel(str(task.get("answer") or "5"))
        try:
            await runner.run(dict(task), model)
            silent = SessionFailed("the workflow never called the model", kind="no model call")
            trials.append(Trial(None if model.replies else silent, model.replies, model.has_tools))
        except SessionFailed as error:
            # Where the script ran out, a real model might have ended the session.
            is_open = error.kind == ContextExceeded.__name__
            trials.append(Trial(None if is_open else error, model.replies, model.has_tools))
    return trials


def find_session_faults(
    source: WorkflowSource,
    tasks: Sequence[Mapping[str, Any]],
    *,
    folder: Path | None = None,
    services: Services = NO_SERVICES,
    job: MappedJob | None = None,
) -> list[Fault]:
    """Return the first session that fails in the sandbox, or why the workflow could not be loaded.

    ``folder`` is the file's: a module that lies beside it is not in the sandbox. ``job`` is what would train
    it: a workflow that offers tools needs a model that is shown them.
    """
    try:
        trials = try_sessions(source, tasks, services=services)
    except ServicesUnusable as error:
        return [Fault("NO_ENVIRONMENT", None, "environments that exist", str(error))]
    except WorkflowUnusable as error:
        return [Fault("NOT_LOADABLE", None, "code that loads in the sandbox", explain_loading(error, folder))]
    has_tools = any(trial.has_tools for trial in trials)
    faults = _find_tool_faults(job) if job is not None and has_tools else []
    failed = [trial.failure for trial in trials if trial.failure is not None]
    if not failed:
        return faults
    first = failed[0]
    got = f"{first}; it failed for {len(failed)} of {len(trials)} tasks, with a scripted model"
    return [
        *faults, Fault("SESSION_FAILED", None, "a session that returns a reward", got, detail=first.traceback)
    ]  # fmt: skip


def _find_tool_faults(job: MappedJob) -> list[Fault]:
    """Check that the model's chat template shows tools; skipped for a model that is not on this machine."""
    if not any((Path(job.model) / file).is_file() for file in _TEMPLATE_FILES):
        return []
    try:
        choose_template(job.model, str(job.params.get("tool_template") or OWN))
    except AgentUnusable as error:
        key = "explorer.rollout_model.tool_template"
        return [Fault("TOOLS_NOT_SHOWN", key, "a chat template that shows tools", str(error))]
    return []


def explain_loading(error: Exception, folder: Path | None) -> str:
    """Return the error; for a module beside the workflow, explain that the sandbox does not have it."""
    found = _NO_MODULE.search(str(error))
    name = found[1].partition(".")[0] if found else ""
    if folder is None or not name or not ((folder / f"{name}.py").is_file() or (folder / name).is_dir()):
        return str(error)
    return (
        f"{error} {name} is next to the file, but the sandbox only has the workflow's own file and installed "
        "packages: move what you need into the file"
    )


def made_up_task() -> dict[str, Any]:
    """Return a made-up task in the form given by question-and-answer rows."""
    return read_task(_MADE_UP)


def read_prepared_tasks(path: Path) -> list[dict[str, Any]]:
    """Read the first tasks of a file prepared for verl."""
    with pq.ParquetFile(path) as file:
        rows = [
            row for batch in file.iter_batches(TRIED_ROWS) for row in islice(batch.to_pylist(), TRIED_ROWS)
        ]
    return [read_task({**row, "raw_prompt": row["prompt"]}) for row in rows[:TRIED_ROWS]]


def find_place_faults(job: MappedJob) -> tuple[list[Fault], list[dict[str, Any]]]:
    """Find what cannot be read of a job resolved by ``places``; also return the first tasks."""
    faults, tasks = find_row_faults(job)
    return [*faults, *_find_template_faults(job)], tasks


def find_row_faults(job: MappedJob) -> tuple[list[Fault], list[dict[str, Any]]]:
    """Find what cannot be read of a job's rows in local files; also return the first tasks."""
    faults: list[Fault] = []
    tasks: list[dict[str, Any]] = []
    if Path(job.train.path).is_file():
        faults, tasks = _read_first(job.train, f"{TASKSET_KEY}.path")
    if job.validation is not None and Path(job.validation.path).is_file():
        faults += _read_first(job.validation, f"{EVAL_KEY}.path")[0]
    return faults, tasks


def _find_template_faults(job: MappedJob) -> list[Fault]:
    """Report ``enable_thinking`` if the chat template does not use it, since it has no effect then."""
    if job.overrides.get(THINKING_SETTING) is not True:
        return []
    files = (Path(job.model) / name for name in _TEMPLATE_FILES)
    if any("enable_thinking" in file.read_text(errors="replace") for file in files if file.is_file()):
        return []
    key = "explorer.rollout_model.enable_thinking"
    return [Fault("NO_EFFECT", key, "a chat template that supports enable_thinking", job.model)]


def _read_first(rows: MappedRows, place: str) -> tuple[list[Fault], list[dict[str, Any]]]:
    try:
        converted = list(islice(convert_rows(rows, "train"), TRIED_ROWS))
    except UnreadableRows as error:
        return [error.as_fault(rows, place)], []
    if not converted:
        return [Fault("BAD_ROWS", place, "rows", f"{rows.path} is empty")], []
    return [], [read_task({**row, "raw_prompt": row["prompt"]}) for row in converted]
