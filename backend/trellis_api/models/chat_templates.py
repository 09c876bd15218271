"""Tries the chat templates of a model's folder: a template is a program that its author wrote."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from trellis_api.models import template_probe

#: Of a busy machine: the probe's own limit is one of processor time.
_TIMEOUT_S = 30.0
MAX_TEMPLATE_BYTES = 1024**2
#: How long a verdict holds that a busy machine may be to blame for.
_UNSURE_S = 20.0
#: Those verdicts, each with its end.
_unsure: dict[tuple[str, ...], tuple[float, str]] = {}


class RunawayTemplate(Exception):
    """An ordinary conversation takes the template too much time or memory."""


@dataclass(frozen=True)
class _Verdict:
    """What trying a template has shown."""

    problem: str | None = None
    is_runaway: bool = False
    shows_tools: bool = False


def find_problem(template: str) -> str | None:
    """Return what is wrong with a template, or None; ``RunawayTemplate`` if it does not terminate."""
    verdict = _try(template)
    if verdict.is_runaway:
        raise RunawayTemplate(verdict.problem)
    return verdict.problem


def shows_tools(template: str) -> bool:
    """Tell whether the template renders tools; ``RunawayTemplate`` if it doesn't terminate."""
    verdict = _try(template, "tools")
    if verdict.is_runaway:
        raise RunawayTemplate(verdict.problem)
    return verdict.shows_tools


@dataclass(frozen=True)
class Refusal:
    """A conversation that a template does not take."""

    place: int
    reason: str


def find_refusal(template: str, conversations: Sequence[Sequence[dict[str, Any]]]) -> Refusal | None:
    """Return the first conversation that a template refuses; None also if it does not terminate."""
    return _ask_refusal(template, list(conversations)) if _refuses_some(template) else None


@lru_cache(maxsize=256)
def _refuses_some(template: str) -> bool:
    """Tell whether it rejects anything that templates usually reject; most don't, and no row is tried."""
    return _ask_refusal(template, None) is not None


def _ask_refusal(template: str, conversations: list[Any] | None) -> Refusal | None:
    asked = json.dumps({"template": template, "conversations": conversations})
    try:
        done = _run(asked.encode("utf-8", "replace"), "rows")
    except RunawayTemplate:
        return None
    if done.returncode != template_probe.REFUSES:
        return None
    found = json.loads(done.stdout)
    return Refusal(found["place"], found["reason"])


def _try(template: str, *arguments: str) -> _Verdict:
    """Try a template; the verdict is kept, as every launch asks and an endless one takes seconds.

    What a busy machine may be to blame for is raised as ``RunawayTemplate``, and only kept for as long as
    the transaction takes for which it was tried.
    """
    key = (template, *arguments)
    kept = _unsure.get(key)
    if kept is not None and time.monotonic() < kept[0]:
        raise RunawayTemplate(kept[1])
    try:
        return _try_once(*key)
    except RunawayTemplate as error:
        now = time.monotonic()
        for old in [each for each, (until, _) in list(_unsure.items()) if until < now]:
            _unsure.pop(old, None)
        _unsure[key] = (now + _UNSURE_S, str(error))
        raise


@lru_cache(maxsize=256)
def _try_once(template: str, *arguments: str) -> _Verdict:
    done = _probe(template, *arguments)
    if done.returncode in (0, template_probe.SHOWS_TOOLS):
        return _Verdict(shows_tools=done.returncode == template_probe.SHOWS_TOOLS)
    if done.returncode == template_probe.BROKEN:
        return _Verdict(done.stdout.decode("utf-8", "replace").strip())
    if done.returncode == -signal.SIGKILL:
        raise RunawayTemplate("the process that tried it was killed, e.g. because memory ran out; try again")
    if done.returncode == template_probe.RUNAWAY or done.returncode < 0:
        memory_mib = template_probe.MEMORY_BYTES // 1024**2
        return _Verdict(
            f"an ordinary conversation takes more than {template_probe.CPU_S} s, {memory_mib} MiB or "
            "the deepest recursion",
            is_runaway=True,
        )
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise RuntimeError(f"the probe of chat templates left with exit code {done.returncode}: {said}")


def _probe(template: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    text = template.encode("utf-8", "replace")
    if len(text) > MAX_TEMPLATE_BYTES:
        raise RunawayTemplate(f"it has more than {MAX_TEMPLATE_BYTES} bytes")
    return _run(text, *arguments)


def _run(text: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-I", str(Path(template_probe.__file__)), *arguments],
            input=text,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunawayTemplate(f"it took longer than {_TIMEOUT_S:g} s") from None
