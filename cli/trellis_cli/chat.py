"""`trellis chat`: talk to a model or a checkpoint; what it says comes as it is written."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient, connect
from trellis_cli.endpoints import Served, path_of, wait_until_ready
from trellis_cli.errors import Problem
from trellis_cli.output import Json, err, print_json

_END = "[DONE]"
Turn = dict[str, str]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(chat)


def chat(
    model: Served,
    prompt: Annotated[
        str | None, typer.Option("--prompt", "-p", help="Send one prompt and exit; '-' reads it from stdin.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", help="System prompt.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", min=0, max=2)] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", max=1)] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Max tokens per answer.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help=("Sampling seed; the same seed gives the same answer."))
    ] = None,
    as_json: Json = False,
) -> None:
    """Chat with a model (NAME or ID) or a checkpoint (JOB:STEP), loading it first if needed.

    Without --prompt, starts a conversation: each line is a turn; an empty line or Ctrl-D ends it.
    """
    client = connect()
    endpoint = wait_until_ready(client, client.post(f"{path_of(client, model)}/endpoint"))
    options = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "seed": seed}
    body = {"model": endpoint["name"], **{key: each for key, each in options.items() if each is not None}}
    turns: list[Turn] = [{"role": "system", "content": system}] if system else []
    for text in _read_turns(prompt):
        turns.append({"role": "user", "content": text})
        answer = _answer(client, {**body, "messages": turns}, as_json=as_json)
        turns.append({"role": "assistant", "content": answer})


def _read_turns(prompt: str | None) -> Iterator[str]:
    """Yield the one prompt, or lines of input until an empty one."""
    if prompt is not None:
        yield sys.stdin.read() if prompt == "-" else prompt
        return
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if not text.strip():
            return
        yield text


def _answer(client: ApiClient, body: dict[str, Any], *, as_json: bool) -> str:
    """Print an answer, piece by piece; as JSON in one document. Its text."""
    if as_json:
        whole = client.send("POST", "/chat/completions", base="/v1", json=body, timeout=None).json()
        print_json(whole)
        return str(whole["choices"][0]["message"]["content"] or "")
    pieces, reason = [], None
    with client.events("/v1/chat/completions", {**body, "stream": True}) as events:
        for event in events:
            if event == _END:
                break
            said = json.loads(event)
            if "error" in said:
                raise Problem(said["error"]["message"])
            for choice in said["choices"]:
                piece = choice["delta"].get("content") or ""
                reason = choice.get("finish_reason") or reason
                pieces.append(piece)
                sys.stdout.write(piece)
                sys.stdout.flush()
    sys.stdout.write("\n")
    if reason == "length":
        err.print("[dim]truncated; raise --max-tokens for a longer answer[/dim]")
    return "".join(pieces)
