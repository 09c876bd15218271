"""Workflows in the sandbox: a process each while they run, model calls handed over between steps.

A process that did something wrong is ended, and the next session gets a new one; whatever a workflow
does, its session ends with a result or a ``SessionFailed`` that says why.
"""

import asyncio
import logging
import math
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from trellis_contracts.workflows import ContextExceeded, Message, ModelError

from trellis_train.agents.tune.program import WorkflowSource, WorkflowUnusable
from trellis_train.agents.tune.services import NO_SERVICES, Services
from trellis_train.rollout.response_times import measure_part
from trellis_train.sandbox.command import Belongings, require_sandbox
from trellis_train.sandbox.errors import CodeNotLoaded, SandboxError, SandboxUnavailable, TooSlow
from trellis_train.sandbox.limits import MIB, Limits
from trellis_train.sandbox.plain_data import NotPlain, dump, load
from trellis_train.sandbox.session import SandboxSession

log = logging.getLogger(__name__)
#: Conversations grow: what crosses in a step may be larger than a reward's answer.
_ANSWER_BYTES = 16 * MIB
#: A process is made anew after so many sessions, before its processor time is used up.
_PROCESS_LASTS = 200
_CPU_S = 3600
#: Of packages: their libraries have many files open, and a database is copied to be written.
_FOR_PACKAGES = {"disk_bytes": 64 * MIB, "open_files": 256}
#: Calls that one session may make, side by side or one after the other.
MAX_CALLS = 1000
#: Kinds of failures that are no error of the workflow's own.
TIMEOUT, SANDBOX, NO_REWARD = "timeout", "sandbox", "no reward"
_KIND_CHARACTERS, _TRACEBACK_CHARACTERS = 80, 4000


class AnswersCalls(Protocol):
    """What answers a session's calls: the policy (``RecordingChatModel``), or a script."""

    async def answer(self, messages: list[Message], tools: list[Message], options: Message) -> Message:
        """Return the reply to an already validated call, as plain data."""


class SessionFailed(RuntimeError):
    """The workflow gave no reward: it raised, hung, died, or returned something else."""

    def __init__(self, message: str, *, kind: str = NO_REWARD, traceback: str = "") -> None:
        super().__init__(message)
        #: What failures are counted by: the name of the exception, or one of the kinds above.
        self.kind = kind
        #: Through the workflow's own lines; empty where none of them raised.
        self.traceback = traceback

    @property
    def is_timeout(self) -> bool:
        """Whether the session, or a step of it, took too long."""
        return self.kind == TIMEOUT


@dataclass(frozen=True)
class RunnerLimits:
    """What workflows may use."""

    #: Sessions that run at a time.
    runners: int = 16
    #: Of a whole session, replies of the model included.
    session_timeout_s: float = 900.0
    #: Of the workflow's own work between two replies, and of loading it.
    step_timeout_s: float = 30.0
    memory_mb: int = 1024


@dataclass(frozen=True)
class SessionResult:
    """How a workflow ended."""

    reward: float
    metrics: dict[str, float] = field(default_factory=dict)
    response: str | None = None


class WorkflowRunner:
    """Runs sessions of one workflow, as many at a time as the limits allow."""

    def __init__(
        self, source: WorkflowSource, limits: RunnerLimits, services: Services = NO_SERVICES
    ) -> None:
        """Raise ``WorkflowUnusable`` where code cannot be isolated on this machine."""
        try:
            require_sandbox()
        except SandboxUnavailable as error:
            raise WorkflowUnusable(str(error)) from error
        self.limits = limits
        self._source = source
        self._services = services
        self._program = source.build_program(services.constants)
        self._threads = ThreadPoolExecutor(limits.runners, thread_name_prefix="workflow")
        self._free: queue.LifoQueue[_Process] = queue.LifoQueue()
        self._processes: list[_Process] = []
        self._making = threading.Lock()
        self._places: asyncio.Semaphore | None = None

    def check(self) -> None:
        """Load the workflow once; ``WorkflowUnusable`` where that fails."""
        process = self._take()
        try:
            process.open()
        except CodeNotLoaded as error:
            raise WorkflowUnusable(f"The workflow '{self._source.name}' cannot be used: {error}.") from None
        finally:
            self._free.put(process)

    async def run(self, task: dict[str, Any], model: AnswersCalls) -> SessionResult:
        """Run one session with ``model`` answering its calls; ``SessionFailed`` where it gave no reward."""
        if self._places is None:
            self._places = asyncio.Semaphore(self.limits.runners)
        async with self._places:
            process = self._take()
            is_sound = False
            try:
                async with asyncio.timeout(self.limits.session_timeout_s):
                    result = await self._converse(process, task, model)
                is_sound = True
                return result
            except TimeoutError:
                limit = self.limits.session_timeout_s
                raise SessionFailed(f"the session took longer than {limit:g} s", kind=TIMEOUT) from None
            except _Raised as error:
                is_sound = True
                raise error.as_failure() from None
            except (SandboxError, NotPlain) as error:
                kind = TIMEOUT if isinstance(error, TooSlow) else SANDBOX
                raise SessionFailed(str(error), kind=kind) from None
            finally:
                self._give_back(process, is_sound=is_sound)

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.end()
        self._threads.shutdown(wait=True)

    async def _converse(
        self, process: "_Process", task: dict[str, Any], model: AnswersCalls
    ) -> SessionResult:
        pending: dict[asyncio.Task[dict[str, Any]], int] = {}
        made = 0
        try:
            step = await self._call(process, "begin", task)
            while "calls" in step:
                for call in _read_calls(step["calls"]):
                    made += 1
                    if made > MAX_CALLS:
                        raise SessionFailed(f"the workflow called the model more than {MAX_CALLS} times")
                    answering = asyncio.create_task(self._answer(model, call))
                    pending[answering] = call["call"]
                if not pending:
                    raise SandboxError("the workflow is stuck: it awaits something that never completes")
                done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                replies = {pending.pop(each): each.result() for each in done}
                step = await self._call(process, "resume", replies)
        finally:
            for each in pending:
                each.cancel()
        if "raised" in step:
            raise _Raised(step["raised"])
        return read_result(step.get("done"))

    async def _answer(self, model: AnswersCalls, call: dict[str, Any]) -> dict[str, Any]:
        """Return the reply, or an error that the workflow can handle."""
        started = time.monotonic()
        try:
            if call.get("of", "model") != "model":
                with measure_part("tool"):
                    return await self._services.answer(call)
            return await model.answer(call["messages"], call["tools"], call["options"])
        except ContextExceeded as error:
            return {"kind": "ContextExceeded", "error": str(error)}
        except Exception as error:
            # What a stranger's process asks for may go wrong in any way: its session hears of it.
            if not isinstance(error, ModelError):
                log.debug("a call of a workflow failed", exc_info=True)
            return {"kind": "ModelError", "error": f"{error} (after {time.monotonic() - started:.1f} s)"}

    async def _call(self, process: "_Process", function: str, argument: Any) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        step = await loop.run_in_executor(self._threads, process.call, function, argument)
        if not isinstance(step, dict):
            raise SandboxError("it wrote invalid data to the result pipe")
        return step

    def _take(self) -> "_Process":
        with self._making:
            if self._free.empty():
                process = _Process(self._program, self.limits, self._source.belongings)
                self._processes.append(process)
                return process
            return self._free.get_nowait()

    def _give_back(self, process: "_Process", *, is_sound: bool) -> None:
        """Return a process to the pool, or end it if it was interrupted or has served enough sessions."""
        process.served += 1
        if is_sound and process.served < _PROCESS_LASTS:
            self._free.put(process)
            return
        with self._making:
            self._processes.remove(process)
        # Not here: a step that is out of time keeps its thread until its own limit.
        threading.Thread(target=process.end, name="workflow-end", daemon=True).start()


class _Raised(Exception):
    """The workflow raised; its process is as good as before."""

    def __init__(self, told: Any) -> None:
        super().__init__()
        self._told = told if isinstance(told, dict) else {"message": str(told)}

    def as_failure(self) -> SessionFailed:
        """Convert the untrusted error to a failure: texts are bounded, sentences are on one line."""
        said = {name: str(self._told.get(name, "")) for name in ("kind", "message", "traceback")}
        kind = " ".join(said["kind"].split())[:_KIND_CHARACTERS]
        return SessionFailed(
            " ".join(said["message"].split()),
            kind=kind or NO_REWARD,
            traceback=said["traceback"][:_TRACEBACK_CHARACTERS],
        )


class _Process:
    """One isolated process, for one session at a time."""

    def __init__(self, program: bytes, limits: RunnerLimits, belongings: Belongings) -> None:
        bounds = Limits(
            wall_s=limits.step_timeout_s,
            cpu_s=_CPU_S,
            memory_bytes=limits.memory_mb * MIB,
            answer_bytes=_ANSWER_BYTES,
            **({} if belongings.folder is None else _FOR_PACKAGES),
        )
        self._sandbox = SandboxSession(program, mode="function", limits=bounds, belongings=belongings)
        self.served = 0

    def open(self) -> None:
        self._sandbox.open()

    def call(self, function: str, argument: Any) -> Any:
        """Call the function in the sandbox and return its result; raises ``SandboxError``, ``NotPlain``."""
        reply = self._sandbox.call({"function": function, "arguments": dump(((argument,), {}))})
        return load(str(reply.get("value")))

    def end(self) -> None:
        self._sandbox.close()


def _read_calls(calls: Any) -> list[dict[str, Any]]:
    """Validate the calls of an untrusted process; ``SandboxError`` if they are malformed."""
    if not isinstance(calls, list) or not all(isinstance(each, dict) and "call" in each for each in calls):
        raise SandboxError("it wrote invalid data to the call pipe")
    return calls


def read_result(done: Any) -> SessionResult:
    """Read the finite numbers in an untrusted result; ``SandboxError`` for anything else."""

    def is_number(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

    if not isinstance(done, dict) or not is_number(done.get("reward")):
        raise SandboxError("the workflow's reward is not a finite number")
    metrics = done.get("metrics") or {}
    if not isinstance(metrics, dict) or not all(map(is_number, metrics.values())):
        raise SandboxError("the workflow returned metrics that are not finite numbers")
    response = done.get("response")
    return SessionResult(
        reward=float(done["reward"]),
        metrics={str(name): float(value) for name, value in metrics.items()},
        response=None if response is None else str(response),
    )
