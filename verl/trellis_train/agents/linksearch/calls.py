"""One call of an episode: checked against its tool's schema, run in a thread, told of."""

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from trellis_contracts.agents import ToolCall

from trellis_train.agents.episode.tool_calls import BrokenCall, ParsedCall
from trellis_train.agents.linksearch.generate import DATABASE_FILE
from trellis_train.agents.linksearch.tools import SCHEMAS, ProfileTools

#: Threads for SQL, each with a connection: SQLite leaves Python's lock while it works.
THREADS = 8
FormatFault = Literal["parse", "name", "args"]
_PARAMETERS = {schema["function"]["name"]: schema["function"]["parameters"] for schema in SCHEMAS}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "array": list, "number": (int, float), "boolean": bool,
}  # fmt: skip
SEARCH, RETURN_RESULTS = "search_profile", "return_results"


@dataclass(frozen=True)
class Outcome:
    """What became of a call."""

    told: ToolCall
    #: What the tool gave; None where it was not run.
    result: dict[str, Any] | None = None
    #: Why the call could not be understood.
    fault: FormatFault | None = None

    @property
    def observation(self) -> str:
        """What the model reads."""
        return self.told.result or ""


@dataclass(frozen=True)
class Desk:
    """The tools of a database, and the threads that they are called in."""

    tools: ProfileTools
    threads: ThreadPoolExecutor

    async def call(self, item: ParsedCall | BrokenCall) -> Outcome:
        """Run a call, or say what is wrong with it; never raises for what a model may write."""
        if isinstance(item, BrokenCall):
            return refuse(item.name, {}, item.fault.value, item.message, fault="parse")
        name, arguments = item.name, item.arguments
        if name not in _PARAMETERS:
            message = f"there is no tool '{name[:100]}'; there are {', '.join(_PARAMETERS)}"
            return refuse(name, arguments, "UNKNOWN_TOOL", message, fault="name")
        if (problem := check_arguments(name, arguments)) is not None:
            return refuse(name, arguments, "BAD_ARGUMENTS", problem, fault="args")
        if name == RETURN_RESULTS:
            told = ToolCall(name=name, arguments=arguments, result_count=len(arguments["results"]))
            return Outcome(told, {"success": True})
        tool: Callable[..., dict[str, Any]] = getattr(self.tools, name)
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self.threads, lambda: tool(**arguments))
        return tell(name, arguments, result, time.monotonic() - started)


@cache
def open_desk(environment: Path) -> Desk:
    """Open the tools of an environment's folder, once per process. Raises ``FileNotFoundError``."""
    tools = ProfileTools(environment / DATABASE_FILE)
    return Desk(tools, ThreadPoolExecutor(THREADS, thread_name_prefix="profiles"))


def tell(name: str, arguments: dict[str, Any], result: dict[str, Any], duration_s: float) -> Outcome:
    """Return the outcome of a call that ran."""
    count = result.get("row_count", 1) if result.get("success") else None
    told = ToolCall(
        name=name,
        arguments=arguments,
        result=json.dumps(result, ensure_ascii=False),
        result_count=count,
        error=(result.get("error") or {}).get("code"),
        duration_s=duration_s,
    )
    return Outcome(told, result)


def refuse(
    name: str, arguments: dict[str, Any], code: str, message: str, *, fault: FormatFault | None = None
) -> Outcome:
    """Return the outcome of a call that is refused and not run."""
    answer = {"success": False, "error": {"code": code, "message": message}}
    told = ToolCall(name=name, arguments=arguments, result=json.dumps(answer, ensure_ascii=False), error=code)
    return Outcome(told, fault=fault)


def check_arguments(name: str, arguments: dict[str, Any]) -> str | None:
    """Return what is wrong with a known tool's arguments (names and outer types), or None."""
    schema = _PARAMETERS[name]
    properties: dict[str, Any] = schema["properties"]
    if missing := [key for key in schema["required"] if key not in arguments]:
        return f"{name} needs {', '.join(missing)}"
    if unknown := sorted(set(arguments) - set(properties)):
        return f"{name} has no argument {', '.join(unknown)[:200]}; it has {', '.join(properties)}"
    for key, value in arguments.items():
        wanted = properties[key]["type"]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_right = isinstance(value, _TYPES[wanted]) and (wanted not in ("integer", "number") or is_number)
        if not is_right:
            return f"{key} has to be of type {wanted}"
    if name == RETURN_RESULTS and not all(isinstance(each, str) for each in arguments["results"]):
        return "results has to be a list of handles"
    return None
