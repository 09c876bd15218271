"""Scores with a person's own Python file, in the sandbox and nowhere else."""

import ast
import asyncio
import hashlib
import itertools
import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trellis_contracts.rewards import RewardFileSource
from trellis_recipes.reward_parts import NAME, BadParts, find_parts

from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable
from trellis_train.sandbox.command import require_sandbox
from trellis_train.sandbox.errors import CodeNotLoaded, SandboxError, SandboxUnavailable
from trellis_train.sandbox.limits import MIB, Limits
from trellis_train.sandbox.session import SandboxSession

#: Processes that score side by side.
MAX_PROCESSES = 4


class PythonFileScorer:
    """What the file's ``score(prompt, response, answer, row)`` returns, and the figures in its ``PARTS``."""

    def __init__(self, source: RewardFileSource, *, timeout_s: float, memory_mb: int) -> None:
        code = _read(source)
        limits = Limits(wall_s=timeout_s, memory_bytes=memory_mb * MIB)
        try:
            require_sandbox()
        except SandboxUnavailable as error:
            raise RewardUnusable(str(error)) from error
        count = min(MAX_PROCESSES, os.cpu_count() or 1)
        self._sessions = [SandboxSession(code, mode="score", limits=limits) for _ in range(count)]
        self._turns = itertools.cycle(self._sessions)
        self._name = source.name
        self.part_names = _find_parts(source, code)
        self._loading = threading.Lock()
        self._has_loaded = False
        self._problem: str | None = None

    async def load(self) -> None:
        """Execute the file once; ``RewardUnusable`` where that fails."""
        await asyncio.to_thread(self.require_loadable)

    async def score(self, sample: Sample) -> float:
        """Ask the next process; ``SandboxError`` where the file's function fails."""
        return (await self.score_parts(sample))[0]

    async def score_parts(self, sample: Sample) -> tuple[float, dict[str, float]]:
        """Return the score and the values of its named parts."""
        reply = await asyncio.to_thread(self.ask, sample)
        return read_value(reply), read_parts(reply, self.part_names)

    def ask(self, sample: Sample) -> dict[str, Any]:
        """Ask the next process and return its reply, for ``read_value``. Thread-safe."""
        request = {
            "prompt": sample.prompt,
            "response": sample.response,
            "answer": sample.answer,
            "row": {**sample.row, "messages": [dict(message) for message in sample.messages]},
        }
        self.require_loadable()
        return next(self._turns).call(request)

    async def close(self) -> None:
        """End the processes."""
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """Close the processes, for a caller without an event loop."""
        for session in self._sessions:
            session.close()

    def require_loadable(self) -> None:
        """Load the file once; raises ``RewardUnusable`` if it fails, so that responses do not each wait."""
        with self._loading:
            if not self._has_loaded and self._problem is None:
                self._problem = self._load()
                self._has_loaded = self._problem is None
        if self._problem is not None:
            raise RewardUnusable(self._problem)

    def _load(self) -> str | None:
        """Load the file; return why it is unusable. A busy machine may be slow, so it gets a second try."""
        for tries_left in (1, 0):
            try:
                self._sessions[0].open()
            except CodeNotLoaded as error:
                if error.was_slow and tries_left:
                    continue
                return f"The reward file '{self._name}' cannot be used: {error}."
            break
        return None


def read_value(reply: dict[str, Any]) -> float:
    """Return the finite number in an untrusted reply; ``SandboxError`` for anything else."""
    value = reply.get("value")
    if isinstance(value, dict):
        return _read_figure(value, "score")
    return _finite(value, "score returned")


def read_parts(reply: dict[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Return the named parts of a reply; ``SandboxError`` if one is missing or not a finite number."""
    if not names:
        return {}
    value = reply.get("value")
    if not isinstance(value, dict):
        raise SandboxError(f"score returned a number, but {NAME} lists {', '.join(names)}: return a dict")
    return {name: _read_figure(value, name) for name in names}


def _read_figure(value: dict[str, Any], name: str) -> float:
    if name not in value:
        raise SandboxError(f'score returned a dict without the key "{name}"')
    return _finite(value[name], "score returned" if name == "score" else f'"{name}" is')


def _finite(value: Any, what: str) -> float:
    if not isinstance(value, int | float):
        raise SandboxError(f"{what} a value that is not a number")
    if not math.isfinite(value):
        raise SandboxError(f"{what} {value}, which is not a finite number")
    return float(value)


def _find_parts(source: RewardFileSource, code: bytes) -> tuple[str, ...]:
    try:
        return find_parts(ast.parse(code))
    except BadParts as error:
        raise RewardUnusable(f"The reward file '{source.name}' cannot be used: {error}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()  # loading it says what is wrong


def _read(source: RewardFileSource) -> bytes:
    """Read the file and check that it is unchanged since the upload."""
    try:
        code = Path(source.path).read_bytes()
    except OSError as error:
        raise RewardUnusable(f"The reward file '{source.name}' cannot be read: {error.strerror}.") from error
    if hashlib.sha256(code).hexdigest() != source.sha256:
        raise RewardUnusable(f"The reward file '{source.name}' was changed after it was uploaded.")
    return code
