"""Tries the chat templates of a model's folder: a template is a program that its author wrote."""

import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from trellis_api.models import template_probe

#: Of a busy machine: the probe's own limit is one of processor time.
_TIMEOUT_S = 30.0
MAX_TEMPLATE_BYTES = 1024**2


class RunawayTemplate(Exception):
    """An ordinary conversation takes the template too much time or memory."""


@lru_cache(maxsize=64)
def find_problem(template: str) -> str | None:
    """What is wrong with a template, or None; ``RunawayTemplate`` where it does not come to an end."""
    done = _probe(template)
    if done.returncode == 0:
        return None
    if done.returncode == template_probe.BROKEN:
        return done.stdout.decode("utf-8", "replace").strip()
    if done.returncode == template_probe.RUNAWAY or done.returncode < 0:
        memory_mib = template_probe.MEMORY_BYTES // 1024**2
        raise RunawayTemplate(
            f"an ordinary conversation takes more than {template_probe.CPU_S} s, {memory_mib} MiB or "
            "the deepest recursion"
        )
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise RuntimeError(f"the probe of chat templates left with exit code {done.returncode}: {said}")


@lru_cache(maxsize=64)
def shows_tools(template: str) -> bool:
    """Whether the tools of a conversation come out; ``RunawayTemplate`` where it does not come to an end."""
    return _probe(template, "tools").returncode == template_probe.SHOWS_TOOLS


def _probe(template: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    text = template.encode("utf-8", "replace")
    if len(text) > MAX_TEMPLATE_BYTES:
        raise RunawayTemplate(f"it has more than {MAX_TEMPLATE_BYTES} bytes")
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
