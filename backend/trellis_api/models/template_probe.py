"""Renders a chat template once, within bounds: a program of its own, started by ``chat_templates``.

The template comes on standard input. Exit codes: 0, it can be rendered (or refuses the conversation in its
own words); ``BROKEN``, with what is wrong on standard output; ``RUNAWAY``, or death by a signal, where it
takes too much time or memory. With the argument ``tools`` the conversation has a tool, and ``SHOWS_TOOLS``
says that its name came out.
"""

import json
import resource
import sys
from typing import Any

BROKEN, RUNAWAY, SHOWS_TOOLS = 3, 4, 5
MEMORY_BYTES = 512 * 1024**2
CPU_S = 3
_MAX_CHARACTERS = 10_000_000
_TURNS = [
    {"role": "user", "content": "What is one and one?"},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "And two and two?"},
]
#: Some templates take no message of the system.
_TOOL_NAME = "probe_of_tools"
_TOOL = {
    "type": "function",
    "function": {"name": _TOOL_NAME, "description": "", "parameters": {"type": "object", "properties": {}}},
}
CONVERSATIONS = [[{"role": "system", "content": "Answer."}, *_TURNS], _TURNS]


class RefusedByTemplate(Exception):
    """The template says that it does not take the conversation."""


def main() -> int:
    """Render the template of standard input."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    template = sys.stdin.buffer.read().decode("utf-8", "replace")
    environment = _make_environment()
    # After the imports: this bounds what the template takes.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    tools = [_TOOL] if "tools" in sys.argv[1:] else None
    for messages in CONVERSATIONS:
        try:
            text = ""
            for piece in environment.from_string(template).generate(**_arguments(messages, tools)):
                text += piece
                if len(text) > _MAX_CHARACTERS:
                    return RUNAWAY
        except RefusedByTemplate:
            continue
        except (MemoryError, RecursionError, OverflowError):
            return RUNAWAY
        except Exception as error:  # noqa: BLE001 - the template is a stranger's program
            print(f"{type(error).__name__}: {error}"[:300])
            return BROKEN
        return SHOWS_TOOLS if tools and _TOOL_NAME in text else 0
    return 0


def _arguments(messages: list[dict[str, str]], tools: list[dict[str, Any]] | None) -> dict[str, Any]:
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return {
        "messages": messages,
        "tools": tools,
        "documents": None,
        "add_generation_prompt": True,
        **special,
    }


def _make_environment() -> Any:
    """As transformers makes it, without files to include."""
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
