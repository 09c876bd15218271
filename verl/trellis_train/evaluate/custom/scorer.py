"""What scores the answers to a dataset's rows, by its kind."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from trellis_contracts.evaluation import BenchmarkTask, CustomOrder, Sample, Score

from trellis_train.evaluate.benchmark import Problem, Scored

_HERE = "trellis_train.evaluate.custom"
#: Where each kind lives: a class that is made with the task, imported when it is ordered.
_SCORERS = {
    "exact": (f"{_HERE}.text_scorers", "ExactAnswers"),
    "contains": (f"{_HERE}.text_scorers", "ContainedAnswers"),
    "regex": (f"{_HERE}.text_scorers", "MatchedAnswers"),
    "numeric": (f"{_HERE}.values", "NumericAnswers"),
    "math": (f"{_HERE}.values", "MathAnswers"),
    "json": (f"{_HERE}.values", "JsonAnswers"),
    "choice": (f"{_HERE}.choices", "ChosenAnswers"),
    "bleu": (f"{_HERE}.overlap", "OverlappingAnswers"),
    "rouge1": (f"{_HERE}.overlap", "OverlappingAnswers"),
    "rouge2": (f"{_HERE}.overlap", "OverlappingAnswers"),
    "rougeL": (f"{_HERE}.overlap", "OverlappingAnswers"),
    "judge": (f"{_HERE}.judge", "JudgeAnswers"),
    "tool_use": (f"{_HERE}.tool_use", "ToolUseAnswers"),
    "file": (f"{_HERE}.scorer_file", "FileAnswers"),
}


class AnswerScorer(Protocol):
    """Scores the answers to one dataset."""

    #: The one that stands for the benchmark comes first. Each is a key of ``Scored.parts``.
    metrics: tuple[str, ...]
    #: Whether each row must have a reference.
    needs_answer: bool

    def reference(self, problem: Problem, place: str) -> str:
        """Return the reference as compared and shown; it becomes ``gold`` of problems given to ``score``.

        Called once for each row as the dataset has it. ``BenchmarkUnusable``, naming ``place``, where no
        answer to it could be scored.
        """

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score the text after the thinking. Must be thread-safe and always terminate."""

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Compute scores that are not means over samples."""

    def manifest(self) -> dict[str, Any]:
        """Return how answers were scored, as JSON."""

    def close(self) -> None:
        """End what was started."""


class PlainScorer:
    """What most scorers have in common: one metric, a reference, nothing to start or to end."""

    metrics: tuple[str, ...] = ("accuracy",)
    needs_answer = True

    def __init__(self, task: BenchmarkTask) -> None:
        self.settings = custom_order(task).scorer

    def reference(self, problem: Problem, place: str) -> str:
        """Return the reference as it is in the row."""
        del place
        return problem.gold

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Return nothing more: all metrics are means."""
        del samples
        return []

    def manifest(self) -> dict[str, Any]:
        """Describe the settings."""
        return {"scorer": self.settings.model_dump(mode="json")}

    def close(self) -> None:
        """Do nothing: nothing was started."""


def custom_order(task: BenchmarkTask) -> CustomOrder:
    """Return the task's order. Raises ``TypeError`` if it is not for a custom dataset."""
    if not isinstance(task.order, CustomOrder):
        raise TypeError(f"{task.label} is no order of a dataset")
    return task.order


def open_scorer(task: BenchmarkTask) -> AnswerScorer:
    """Open the task's scorer; ``BenchmarkUnusable`` if its settings are not usable."""
    module, class_name = _SCORERS[custom_order(task).scorer.kind]
    scorer: AnswerScorer = getattr(import_module(module), class_name)(task)
    return scorer
