"""Runs the code of tools in the sandbox: without network, its own files read-only, within bounds."""

import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_train.sandbox.command import Belongings
from trellis_train.sandbox.errors import CodeNotLoaded, CodeRaised, SandboxError, TooSlow
from trellis_train.sandbox.limits import MIB, Limits
from trellis_train.sandbox.plain_data import NotPlain, dump, load
from trellis_train.sandbox.session import SandboxSession

CODE_FILE = "tools.py"
#: Processor time is that of all calls of a process: more than ``_PROCESS_LASTS`` of them may take.
LIMITS = Limits(
    wall_s=10.0, cpu_s=3600, memory_bytes=1024 * MIB, disk_bytes=64 * MIB, open_files=256, answer_bytes=MIB
)
#: Processes of one environment that are kept for further calls.
_KEPT = 8
#: A process is made anew after so many calls: what it has gathered does not grow for ever.
_PROCESS_LASTS = 200
_PROGRAM = b"""
import asyncio, inspect, json, sys, traceback

sys.path.insert(0, "/workflow")
import tools


def find_missing(names):
    return [name for name in names if not callable(getattr(tools, name, None))]


def call(name, arguments):
    try:
        value = getattr(tools, name)(**arguments)
        if inspect.isawaitable(value):
            value = asyncio.run(_wait(value))
        return {"value": json.dumps(value, default=str)}
    except Exception as error:
        ours = "/workflow/"
        frames = traceback.extract_tb(error.__traceback__)
        lines = [each for each in frames if each.filename.startswith(ours)]
        place = f" ({lines[-1].filename[len(ours):]}, line {lines[-1].lineno})" if lines else ""
        return {"raised": f"{type(error).__name__}: {error}"[:500] + place}


async def _wait(value):
    return await value
"""
_pools: "dict[str, queue.LifoQueue[_Process]]" = {}
_lock = threading.Lock()


@dataclass
class _Process:
    """A process, and how many calls it has answered."""

    session: SandboxSession
    served: int = 0


class ToolFailed(RuntimeError):
    """A tool gave no result; ``code`` says of what kind."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def find_missing(folder: Path, names: list[str]) -> list[str]:
    """Find functions that the code does not have; ``ToolFailed`` where it cannot be loaded."""
    session = _make(folder)
    try:
        return list(_ask(session, "find_missing", names))
    finally:
        session.close()


def call_tool(folder: Path, name: str, arguments: dict[str, Any]) -> str:
    """Call a function and return its result as JSON text. Raises ``ToolFailed``."""
    pool = _pool(folder)
    try:
        process = pool.get_nowait()
    except queue.Empty:
        process = _Process(_make(folder))
    try:
        answer = _ask(process.session, "call", name, arguments)
    finally:
        process.served += 1
        if process.served < _PROCESS_LASTS and pool.qsize() < _KEPT:
            pool.put(process)
        else:
            process.session.close()
    if not isinstance(answer, dict) or "value" not in answer:
        raise ToolFailed(str(answer.get("raised") if isinstance(answer, dict) else answer), "TOOL_RAISED")
    return str(answer["value"])


def forget(folder: Path) -> None:
    """End the processes that are kept for a folder, whose code is about to change."""
    with _lock:
        pool = _pools.pop(str(folder), None)
    while pool is not None and not pool.empty():
        pool.get_nowait().session.close()


def _ask(session: SandboxSession, function: str, *arguments: Any) -> Any:
    try:
        reply = session.call({"function": function, "arguments": dump((arguments, {}))})
        return load(str(reply.get("value")))
    except CodeNotLoaded as error:
        raise ToolFailed(str(error), "NOT_LOADED") from None
    except TooSlow:
        raise ToolFailed(f"it took longer than {LIMITS.wall_s:g} s", "TIMEOUT") from None
    except CodeRaised as error:
        raise ToolFailed(str(error), "TOOL_RAISED") from None
    except (SandboxError, NotPlain) as error:
        raise ToolFailed(str(error), "CRASHED") from None


def _make(folder: Path) -> SandboxSession:
    return SandboxSession(_PROGRAM, mode="function", limits=LIMITS, belongings=Belongings(folder))


def _pool(folder: Path) -> "queue.LifoQueue[_Process]":
    with _lock:
        return _pools.setdefault(str(folder), queue.LifoQueue())
