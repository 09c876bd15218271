"""Scores tool calls: five metrics of each answer as its parts, their weighted mean as its score."""

from typing import Any

from trellis_contracts.evaluation import Verdict

from trellis_train.agents.tooluse.evaluator.metrics import METRICS, OVERALL, WEIGHTS, measure
from trellis_train.agents.tooluse.running import score_with_tools
from trellis_train.agents.tooluse.scoring.reward import write_reference
from trellis_train.agents.tooluse.tasks import BadTask, Task, read_task
from trellis_train.evaluate.benchmark import BenchmarkUnusable, Problem, Scored
from trellis_train.evaluate.custom.scorer import PlainScorer


class ToolUseAnswers(PlainScorer):
    """CORRECT where the simulated calls come to the reference's result; the score is the weighted mean."""

    metrics: tuple[str, ...] = METRICS

    def reference(self, problem: Problem, place: str) -> str:
        """Return the expected calls in the form of a response."""
        read = self._read(problem, place)
        return write_reference(read.truth) or "(no call)"

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score any text, including an empty one: where no call is wanted, it is right."""
        read = self._read(problem, problem.key)
        parts = measure(answer, read.truth, read.toolbox)
        is_right = parts["end_to_end_success"] == 1.0
        feedback = score_with_tools(answer, read.truth, read.toolbox).feedback()
        return Scored(
            Verdict.CORRECT if is_right else Verdict.WRONG,
            parts[OVERALL],
            answer.strip(),
            parts=parts,
            notes={"feedback": feedback},
        )

    def manifest(self) -> dict[str, Any]:
        """Describe the settings and the weights of the five metrics."""
        return {**super().manifest(), "weights": dict(WEIGHTS)}

    def _read(self, problem: Problem, place: str) -> Task:
        try:
            task = read_task(problem.row, place)
            task.toolbox  # noqa: B018 - raises where the row has no tools
        except BadTask as error:
            raise BenchmarkUnusable(str(error)) from error
        return task
