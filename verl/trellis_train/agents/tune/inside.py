"""Runs a workflow in the sandbox, step by step; imports nothing of ours (``program`` assembles the whole).

The engine's side calls ``begin(task)`` and then ``resume(replies)``; each runs the workflow until it waits
for the model, and says what it asks, or how it ended. So a model call needs no connection of its own.
"""

import asyncio
import base64
import inspect
import itertools
import linecache
import math
import sys
import traceback
import types
from typing import Any

#: Filled in by ``program``: sources of the modules that lie inside, and the person's own.
MODULES: dict[str, str] = {}
CODE = ""
IS_PICKLE = False
FUNCTION = ""
#: The name that the person's file has in tracebacks.
WORKFLOW_FILE = "workflow.py"
#: Of a package: where its files lie.
FOLDER = ""
#: What else the other side answers: tools by environment, names of other models.
ENVIRONMENTS: "dict[str, list[dict[str, Any]]]" = {}
AUXILIARY: "list[str]" = []
#: The parameter that other models are handed to.
AUXILIARY_PARAMETER = "auxiliary_models"
#: How often others may run before a step ends that waits for the model only.
_SPINS = 20
_SHOWN = 500
_SHOWN_TRACEBACK = 4000

_workflow: Any = None
_judge: Any = None
_loop = asyncio.new_event_loop()
_numbers = itertools.count(1)
_session: "asyncio.Task[Any] | None" = None
_asked: "list[dict[str, Any]]" = []
_waiting: "dict[int, asyncio.Future[Any]]" = {}


def provide_modules() -> None:
    """Make the modules importable under their names, and the contract's as ``trellis``."""
    for name, source in MODULES.items():
        module = types.ModuleType(name)
        sys.modules[name] = module
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102 - our own
        if name == "trellis_contracts.workflows":
            module.__getattr__ = _refuse  # type: ignore[method-assign]
            sys.modules["trellis"] = module
            package = types.ModuleType("trellis_contracts")
            package.__path__ = []
            package.workflows = module  # type: ignore[attr-defined]
            sys.modules["trellis_contracts"] = package


def start() -> None:
    """Load the person's code; called once, when everything above is filled in."""
    global _workflow, _judge
    provide_modules()
    try:
        _workflow, _judge = load_functions()
    except BaseException as error:
        # The harness knows no lines but its own.
        error.__dict__["told"] = describe(error)
        raise


def _refuse(name: str) -> Any:
    """Return a stub for other names of ``trellis`` that raises when called.

    Imports of them must work, because a file may define a workflow and also start its training.
    """
    if name.startswith("__"):
        raise AttributeError(name)

    def cannot(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"trellis.{name} cannot be used inside a session")

    return cannot


def load_functions() -> "tuple[Any, Any]":
    """Load the user's workflow and judge (None if there is no judge)."""
    code = base64.b64decode(CODE)
    if IS_PICKLE:
        import cloudpickle

        functions = cloudpickle.loads(code)
        return functions["workflow"], functions["judge"]
    text = code.decode(errors="replace")
    if FOLDER:
        sys.path.insert(0, FOLDER)
    # A single file does not lie inside, and a traceback shows the lines of files.
    linecache.cache[WORKFLOW_FILE] = (len(text), None, text.splitlines(keepends=True), WORKFLOW_FILE)
    module = types.ModuleType("workflow")
    module.__file__ = WORKFLOW_FILE
    sys.modules["workflow"] = module
    exec(compile(code, WORKFLOW_FILE, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - what this is for
    names = module.__dict__
    if not inspect.iscoroutinefunction(names.get(FUNCTION)):
        raise TypeError(f"the file has no async function {FUNCTION}(task, model)")
    return names[FUNCTION], names.get("judge")


async def ask(request: "dict[str, Any]") -> Any:
    """Send a request to the parent process and return its reply; raises the error in the reply."""
    number = next(_numbers)
    _asked.append({**request, "call": number})
    _waiting[number] = _loop.create_future()
    reply = await _waiting[number]
    if "kind" in reply and "error" in reply:
        raise getattr(sys.modules["trellis"], reply["kind"])(reply["error"])
    return reply


def make_model() -> Any:
    """Create the model object for the workflow; its calls wait for the parent process's reply."""
    ours = sys.modules["trellis"]

    class Model(ours.TunableChatModel):  # type: ignore[name-defined]
        async def _ask(self, messages: Any, tools: Any, options: Any) -> Any:
            return await ask({"of": "model", "messages": messages, "tools": tools, "options": options})

        def _environments(self) -> Any:
            return ENVIRONMENTS

        async def _call_tool(self, environment: str, tool: str, arguments: Any) -> Any:
            called = {"environment": environment, "tool": tool, "arguments": arguments}
            return await ask({"of": "tool", **called})

        async def _fetch(self, request: Any) -> Any:
            return await ask({"of": "host", "request": request})

    return Model()


def make_auxiliary_models() -> "dict[str, Any]":
    """Create the auxiliary models, by name."""
    ours = sys.modules["trellis"]

    class Auxiliary(ours.AuxiliaryModel):  # type: ignore[name-defined]
        def __init__(self, name: str) -> None:
            self.name = name

        async def _ask(self, messages: Any, tools: Any, options: Any) -> Any:
            asked = {"messages": messages, "tools": tools, "options": options}
            return await ask({"of": "auxiliary", "name": self.name, **asked})

    return {name: Auxiliary(name) for name in AUXILIARY}


def complete_arguments(function: Any, *arguments: Any) -> "list[Any]":
    """Append the auxiliary models if the function has a parameter for them."""
    if AUXILIARY_PARAMETER in inspect.signature(function).parameters:
        return [*arguments, make_auxiliary_models()]
    return list(arguments)


async def run_session(task: "dict[str, Any]") -> "dict[str, Any]":
    """Run the workflow, and the judge if the workflow gave no reward."""
    ours = sys.modules["trellis"]
    found = await _workflow(*complete_arguments(_workflow, task, make_model()))
    metrics: dict[str, Any] = {}
    response = None
    reward = found
    if isinstance(found, ours.WorkflowOutput):
        reward, response = found.reward, found.response
        metrics.update(found.metrics)
        if reward is None:
            if _judge is None:
                raise TypeError("the workflow returned no reward, and the file has no judge(task, response)")
            judged = await _judge(*complete_arguments(_judge, task, found.response))
            if not isinstance(judged, ours.JudgeOutput):
                raise TypeError(f"the judge returned {type(judged).__name__}, not a JudgeOutput")
            reward = judged.reward
            metrics.update(judged.metrics)
    return {
        "reward": as_number(reward, "the reward"),
        "metrics": {str(name): as_number(value, f"the metric {name}") for name, value in metrics.items()},
        "response": None if response is None else str(response)[: 10 * _SHOWN],
    }


def as_number(value: Any, what: str) -> float:
    """Convert to a finite float; ``TypeError`` or ``ValueError`` for anything else."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} is {type(value).__name__}, not a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{what} is {number}, not a finite number")
    return number


def begin(task: "dict[str, Any]") -> "dict[str, Any]":
    """Start a session; what it asks or how it ended."""
    global _session
    _asked.clear()
    _waiting.clear()
    _session = _loop.create_task(run_session(task))
    return _step()


def resume(replies: "dict[int, Any]") -> "dict[str, Any]":
    """Hand over replies by the numbers of their calls; what it asks next or how it ended."""
    for number, reply in replies.items():
        waiting = _waiting.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)
    return _step()


def _step() -> "dict[str, Any]":
    """Run the session until it has ended, asks for something, or waits for replies only."""
    _loop.run_until_complete(_run_until_it_waits())
    calls = list(_asked)
    _asked.clear()
    if _session is None or not _session.done():
        return {"calls": calls}
    try:
        return {"done": _session.result()}
    except BaseException as error:  # noqa: BLE001 - sys.exit() included: a person's code must not choose the end
        return {
            "raised": {"kind": type(error).__name__, "message": describe(error), "traceback": trace(error)}
        }
    finally:
        for other in asyncio.all_tasks(_loop):
            other.cancel()


async def _run_until_it_waits() -> None:
    spins = 0
    while _session is not None and not _session.done():
        if _waiting:
            # Others that are ready may ask, too; what they wait for besides goes on in the next step.
            spins += 1
            if spins > _SPINS:
                return
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(0.001)


def describe(error: BaseException) -> str:
    """Format the error as one line, with the line of the workflow where it was raised."""
    frames = list_their_frames(error)
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 - the error's own code may fail too
        message = "(the error has no readable message)"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    name = "" if not frames else frames[-1].filename if FOLDER else frames[-1].filename.rpartition("/")[2]
    place = f" ({name}, line {frames[-1].lineno})" if frames else ""
    return text[:_SHOWN].replace("\n", " ") + place


def trace(error: BaseException) -> str:
    """Format the traceback of the user's own code, without the frames of the framework."""
    frames = traceback.format_list(list_their_frames(error))
    lines = ["Traceback (most recent call last):\n", *frames] if frames else []
    try:
        lines += traceback.format_exception_only(type(error), error)
    except BaseException:  # noqa: BLE001 - as above
        lines.append(type(error).__name__)
    return "".join(lines).rstrip()[-_SHOWN_TRACEBACK:]


def list_their_frames(error: BaseException) -> "list[traceback.FrameSummary]":
    """List the frames of the error in the person's own code; the line that raised it comes last."""
    frames = traceback.extract_tb(error.__traceback__)
    return [
        traceback.FrameSummary(name_file(frame.filename), frame.lineno, frame.name, line=frame.line)
        for frame in frames
        if is_theirs(frame.filename)
    ]


def name_file(filename: str) -> str:
    """Return a file's path within its package, or its name outside a package."""
    if FOLDER and filename.startswith(f"{FOLDER}/"):
        return filename[len(FOLDER) + 1 :]
    return filename


def is_theirs(filename: str) -> bool:
    """Tell whether a frame is from the person's own code."""
    if IS_PICKLE:
        return not filename.startswith(("<", "/sandbox", "/usr", sys.prefix, sys.base_prefix))
    return filename == WORKFLOW_FILE or bool(FOLDER and filename.startswith(f"{FOLDER}/"))
