"""Answers scored by a person's own Python file, in the sandbox and nowhere else."""

import hashlib
import math
from pathlib import Path
from typing import Any

from trellis_contracts.evaluation import BenchmarkTask, CodeScorer, Verdict
from trellis_contracts.rewards import RewardFileSource

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Problem, Scored
from trellis_train.evaluate.custom.scorer import PlainScorer
from trellis_train.evaluate.scored import failed
from trellis_train.rewards.python_file import PythonFileScorer, read_value
from trellis_train.rewards.sample import Sample as Response
from trellis_train.rewards.sample import plain_row
from trellis_train.rewards.scorer import RewardUnusable
from trellis_train.sandbox.errors import SandboxError
from trellis_train.sandbox.output import as_text

#: Of one answer.
TIMEOUT_S = 5.0
MEMORY_MB = 512


class FileAnswers(PlainScorer):
    """What the file's ``score(prompt, response, answer, row)`` returns: a number, or a dict with ``score``
    whose other numbers are kept beside it."""

    metrics = ("score", "accuracy")
    needs_answer = False
    settings: CodeScorer

    def __init__(self, task: BenchmarkTask) -> None:
        super().__init__(task)
        if task.scorer_path is None:
            raise BenchmarkUnusable(f"the scorer '{self.settings.file}' is missing from this run's spec")
        path = Path(task.scorer_path)
        try:
            self._sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise BenchmarkUnusable(f"the scorer '{path.name}' cannot be read: {error.strerror}") from error
        source = RewardFileSource(name=self.settings.file, path=str(path), sha256=self._sha256)
        try:
            self._file = PythonFileScorer(source, timeout_s=TIMEOUT_S, memory_mb=MEMORY_MB)
            self._file.require_loadable()
        except RewardUnusable as error:
            raise BenchmarkUnusable(f"{task.label}: {error}") from error

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score with the file's function; FAILED if it raises, times out or returns no number."""
        response = Response(
            response=answer,
            answer=problem.gold,
            messages=problem.messages or [],
            row=plain_row(problem.row),
        )
        try:
            reply = self._file.ask(response)
            value = read_value(reply)
        except SandboxError as error:
            return failed(self.metrics, f"the scorer: {error}")
        is_right = value >= self.settings.threshold
        parts = {**_other_numbers(reply), "score": value, "accuracy": float(is_right)}
        verdict = Verdict.CORRECT if is_right else Verdict.WRONG
        return Scored(verdict, min(1.0, max(0.0, value)), None, parts)

    def manifest(self) -> dict[str, Any]:
        """Describe the settings and the hash of the scorer file."""
        return super().manifest() | {"scorer_sha256": self._sha256}

    def close(self) -> None:
        """End the file's processes."""
        self._file.end()


def _other_numbers(reply: dict[str, Any]) -> dict[str, float]:
    value = reply["value"]
    if not isinstance(value, dict):
        return {}
    return {
        as_text(str(name)[:100]): float(number)
        for name, number in value.items()
        if isinstance(number, int | float) and math.isfinite(number)
    }
