"""Renders a chat template, within bounds: a program of its own, started by ``chat_templates``.

The template comes on standard input. Exit codes: 0, it can be rendered (or refuses the conversation in its
own words); ``BROKEN``, with what is wrong on standard output; ``RUNAWAY``, or death by a signal, where it
takes too much time or memory on any of the conversations that trainers and engines render: whole, turn by
turn, with and without tools and a prompt for the next turn. With the argument ``tools`` the conversation has
a tool, and ``SHOWS_TOOLS`` says that its name came out. With ``rows`` standard input is JSON, ``template``
and ``conversations``: ``REFUSES`` says that the template refuses one, with its place and the reason in JSON
on standard output; without ``conversations`` it is asked what templates use to refuse.
"""

import json
import resource
import sys
from collections.abc import Iterator
from typing import Any

BROKEN, RUNAWAY, SHOWS_TOOLS, REFUSES = 3, 4, 5, 6
MEMORY_BYTES = 512 * 1024**2
CPU_S = 3
_MAX_CHARACTERS = 10_000_000
_TURNS = [
    {"role": "user", "content": "What is one and one?"},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "And two and two?"},
]
_TOOL_NAME = "probe_of_tools"
_TOOL = {
    "type": "function",
    "function": {"name": _TOOL_NAME, "description": "", "parameters": {"type": "object", "properties": {}}},
}
_SYSTEM = {"role": "system", "content": "Answer."}
_CALL = {
    "type": "function",
    "id": "call00001",
    "function": {"name": _TOOL_NAME, "arguments": {"key": "value"}},
}
#: Some templates take no message of the system.
CONVERSATIONS: list[list[dict[str, Any]]] = [[_SYSTEM, *_TURNS], _TURNS]
_TOOL_USE: list[dict[str, Any]] = [
    _TURNS[0],
    {"role": "assistant", "content": "", "reasoning_content": "A tool knows.", "tool_calls": [_CALL]},
    {"role": "tool", "name": _TOOL_NAME, "tool_call_id": "call00001", "content": "2"},
    _TURNS[1],
]
#: What templates refuse that insist on user and assistant in turn.
OFTEN_REFUSED: list[list[dict[str, Any]]] = [
    [_SYSTEM, *_TURNS], [_TURNS[0], _TURNS[0]], [_TURNS[1]], _TOOL_USE, [*_TOOL_USE[:3], _TURNS[0]],
]  # fmt: skip


class RefusedByTemplate(Exception):
    """The template says that it does not take the conversation."""


def main() -> int:
    """Render the template of standard input."""
    # SIGXCPU at the first, so that SIGKILL always comes from outside.
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    template = sys.stdin.buffer.read().decode("utf-8", "replace")
    if "rows" in sys.argv[1:]:
        return _find_refusal(**json.loads(template))
    environment = _make_environment()
    # After the imports: this bounds what the template takes.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    tools = [_TOOL] if "tools" in sys.argv[1:] else None
    try:
        compiled = environment.from_string(template)
    except _RUNAWAYS:
        return RUNAWAY
    except Exception as error:  # noqa: BLE001 - the template is a stranger's program
        return _tell_broken(error)
    verdict = 0
    for messages in CONVERSATIONS:
        try:
            text = _render(compiled, _arguments(messages, tools))
        except RefusedByTemplate:
            continue
        except _RUNAWAYS:
            return RUNAWAY
        except Exception as error:  # noqa: BLE001 - the template is a stranger's program
            verdict = _tell_broken(error)
        else:
            verdict = SHOWS_TOOLS if tools and _TOOL_NAME in text else 0
        break
    return RUNAWAY if _runs_away(compiled) else verdict


def _find_refusal(template: str, conversations: list[list[dict[str, Any]]] | None = None) -> int:
    """Test whether the template rejects one of the conversations with a message of its own."""
    environment = _make_environment()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        compiled = environment.from_string(template)
    except Exception:  # noqa: BLE001 - the template is a stranger's program; that it is broken is told elsewhere
        return 0
    for place, messages in enumerate(OFTEN_REFUSED if conversations is None else conversations):
        try:
            _render(compiled, _arguments(messages, None) | {"add_generation_prompt": False})
        except RefusedByTemplate as error:
            print(json.dumps({"place": place, "reason": str(error)[:300]}))
            return REFUSES
        except _RUNAWAYS:
            return RUNAWAY
        except Exception:  # noqa: BLE001, S112 - as above
            continue
    return 0


def _tell_broken(error: Exception) -> int:
    print(f"{type(error).__name__}: {error}"[:300])
    return BROKEN


class TooLong(Exception):
    """The text has more characters than any conversation needs."""


_RUNAWAYS = (MemoryError, RecursionError, OverflowError, TooLong)


def _render(compiled: Any, arguments: dict[str, Any]) -> str:
    text = ""
    for piece in compiled.generate(**arguments):
        text += piece
        if len(text) > _MAX_CHARACTERS:
            raise TooLong
    return text


def _runs_away(compiled: Any) -> bool:
    """Tell whether other conversations exhaust time or memory; it may reject them or fail there."""
    for arguments in _other_uses():
        try:
            _render(compiled, arguments)
        except _RUNAWAYS:
            return True
        except Exception:  # noqa: BLE001, S112 - as a trainer would see it, in a message and not in a hang
            continue
    return False


def _other_uses() -> Iterator[dict[str, Any]]:
    whole = [[_SYSTEM, *_TURNS], _TURNS, _TOOL_USE]
    # Trainers also render each turn on its own.
    turns = [[_SYSTEM], *([each] for each in _TOOL_USE)]
    for messages in (*whole, *turns):
        for tools in (None, [_TOOL]):
            for is_prompt in (True, False):
                yield _arguments(messages, tools) | {"add_generation_prompt": is_prompt}
    yield _arguments(_TURNS, None) | {"enable_thinking": False}
    yield _arguments(_TURNS, None) | {"enable_thinking": True}


def _arguments(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> dict[str, Any]:
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return {
        "messages": messages,
        "tools": tools,
        "documents": None,
        "add_generation_prompt": True,
        **special,
    }


def _make_environment() -> Any:
    """Make the environment as transformers does, without files to include."""
    import datetime

    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """``{% generation %}`` marks what the assistant says; here it changes nothing."""

        tags = {"generation"}  # noqa: RUF012 - jinja's own form

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def refuse(message: str) -> None:
        raise RefusedByTemplate(message)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    made.filters["tojson"] = lambda value, indent=None, **_: json.dumps(
        value, ensure_ascii=False, indent=indent
    )
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return made


if __name__ == "__main__":
    sys.exit(main())
