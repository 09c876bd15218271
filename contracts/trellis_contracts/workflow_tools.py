"""The tools of an environment as a workflow has them: schemas to offer, functions to call.

Only the standard library: this file lies in the sandbox beside the workflow.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
#: Calls a tool: environment, tool, arguments; ``{"result", "error", "ends_episode"}``.
CallTool = Callable[[str, str, dict[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool answered."""

    result: Any
    #: Code of the refusal (``DENIED``, ``BAD_ARGUMENTS`` ...); None where the tool did what it was asked.
    error: str | None = None
    #: The tool is the one that ends an episode.
    ends_episode: bool = False

    @property
    def text(self) -> str:
        """As the model is shown it."""
        return self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False)


class ToolSet:
    """The tools of one environment.

    ``tools.schemas`` is what ``model(messages, tools=...)`` takes, ``await tools.search(sql=...)`` calls one,
    and ``await tools.answer(reply)`` makes all calls of a reply.
    """

    def __init__(self, environment: str, tools: Sequence[Mapping[str, Any]], call_tool: CallTool) -> None:
        self.environment = environment
        self._tools = {str(tool["name"]): dict(tool) for tool in tools}
        self._call_tool = call_tool

    @property
    def names(self) -> list[str]:
        """Of the tools."""
        return list(self._tools)

    @property
    def schemas(self) -> list[Message]:
        """In OpenAI's form."""
        return [
            {
                "type": "function",
                "function": {name: tool[name] for name in ("name", "description", "parameters")},
            }
            for tool in self._tools.values()
        ]

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolAnswer:
        """Call a tool and return its answer; a refusal is an answer, too."""
        if name not in self._tools:
            known = ", ".join(self._tools)
            return ToolAnswer(f"There is no tool {name}; there are {known}.", error="UNKNOWN_TOOL")
        found = await self._call_tool(self.environment, name, dict(arguments or {}))
        return ToolAnswer(found["result"], found.get("error"), bool(found.get("ends_episode")))

    async def answer(self, reply: Any) -> list[Message]:
        """Run a reply's ``tool_calls`` and return the results as messages, in order."""
        messages = []
        for call in reply.tool_calls:
            found = await self.call(call.name, call.arguments)
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": found.text}
            )
        return messages

    def __getitem__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return the tool as an async function that takes its arguments and returns the result."""
        if name not in self._tools:
            raise KeyError(f"the environment {self.environment} has no tool {name}: {', '.join(self._tools)}")
        tool = self._tools[name]

        async def function(**arguments: Any) -> Any:
            return (await self.call(name, arguments)).result

        function.__name__ = function.__qualname__ = name
        function.__doc__ = tool["description"]
        return function

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[Callable[..., Awaitable[Any]]]:
        return (self[name] for name in self._tools)

    def __len__(self) -> int:
        return len(self._tools)


@dataclass(frozen=True)
class Fetched:
    """The answer of a host."""

    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        """Parse the text as JSON; raise ``ValueError`` if it is not."""
        return json.loads(self.text)


def choose_tools(
    environments: Mapping[str, Sequence[Mapping[str, Any]]], name: str | None, call_tool: CallTool
) -> ToolSet:
    """Return the tools of the named environment, or of the only one; raise ``ValueError`` otherwise."""
    known = ", ".join(environments) or "none"
    if name is None and len(environments) != 1:
        raise ValueError(f"model.tools() needs the name of an environment; the job has {known}")
    chosen = name if name is not None else next(iter(environments))
    if chosen not in environments:
        raise ValueError(f"the job has no environment {chosen!r}; it has {known}")
    return ToolSet(chosen, environments[chosen], call_tool)
