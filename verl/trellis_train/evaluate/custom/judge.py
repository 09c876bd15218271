"""Answers that a model judges: by a rubric's points, or against the reference in both orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis_contracts.evaluation import BenchmarkTask, JudgeScorer, Sample, Verdict

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Problem, Scored
from trellis_train.evaluate.custom.agreement import measure_agreement, read_label
from trellis_train.evaluate.custom.asked_judge import AskedJudge, NotJudged
from trellis_train.evaluate.custom.judge_prompts import (
    PAIRWISE,
    RUBRIC,
    ask_by_rubric,
    ask_for_better,
    list_points,
    read_better,
    read_grades,
    read_prompt,
)
from trellis_train.evaluate.custom.scorer import PlainScorer
from trellis_train.evaluate.scored import failed, unanswered

#: A person's verdict among a sample's parts, 0 to 1.
HUMAN = "human"


@dataclass(frozen=True)
class _Judged:
    score: float
    parts: dict[str, float]
    notes: dict[str, str]


class JudgeAnswers(PlainScorer):
    """``grade``: the mean of the points' grades, 0 to 1. ``win_rate``: the share of both orders in which the
    answer is better than the reference, ties half; ``consistency``: whether both orders say the same."""

    settings: JudgeScorer

    def __init__(self, task: BenchmarkTask) -> None:
        super().__init__(task)
        settings = self.settings
        if task.judge is None:
            raise BenchmarkUnusable(f"the judge '{settings.judge}' is missing from this run's spec")
        self._is_pairwise = settings.form == "pairwise"
        self.needs_answer = self._is_pairwise
        self.metrics = ("win_rate", "consistency") if self._is_pairwise else ("grade", "accuracy")
        self._prompt = read_prompt(PAIRWISE if self._is_pairwise else RUBRIC)
        try:
            self._points = list_points(settings.rubric) or list_points(read_prompt(RUBRIC).texts["rubric"])
        except ValueError as error:
            raise BenchmarkUnusable(f"{task.label}: {error}") from error
        self._model = task.judge.model
        self._judge = AskedJudge(settings.judge, task.judge, label=task.label, max_cost=settings.max_cost)

    def reference(self, problem: Problem, place: str) -> str:
        """Return the reference from the row; a human label, if any, must be valid."""
        read_label(problem.row, self.settings.human_column, place)
        return problem.gold

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score by the judge's reply; FAILED if it cannot be parsed."""
        label = read_label(problem.row, self.settings.human_column, problem.key)
        human = {} if label is None else {HUMAN: label}
        if not answer.strip():
            scored = unanswered(self.metrics)
            return Scored(scored.verdict, scored.score, parts={**scored.parts, **human})
        try:
            judged = self._compare(problem, answer) if self._is_pairwise else self._grade(problem, answer)
        except NotJudged as error:
            return failed(self.metrics, str(error))
        verdict = Verdict.CORRECT if judged.score >= self.settings.threshold else Verdict.WRONG
        parts = {**judged.parts, **human}
        if "accuracy" in self.metrics:
            parts["accuracy"] = float(verdict is Verdict.CORRECT)
        notes = {**judged.notes, "judge_prompt": self._prompt.version}
        return Scored(verdict, judged.score, None, parts, notes)

    def _grade(self, problem: Problem, answer: str) -> _Judged:
        question = ask_by_rubric(
            self._points, prompt=problem.text or "", answer=problem.gold, response=answer
        )
        grades, reason = self._judge.ask(question, lambda text: read_grades(text, len(self._points)))
        mean = sum(grades) / len(grades)
        parts = {f"point {number}": grade for number, grade in enumerate(grades, start=1)}
        return _Judged(mean, {"grade": mean, **parts}, {"reason": reason})

    def _compare(self, problem: Problem, answer: str) -> _Judged:
        """Compare in both orders, because models prefer one position: each answer is first once."""
        values = {"rubric": self.settings.rubric, "prompt": problem.text or ""}
        as_first, reason_first = self._judge.ask(
            ask_for_better(**values, first=answer, second=problem.gold), read_better
        )
        reference_first, reason_second = self._judge.ask(
            ask_for_better(**values, first=problem.gold, second=answer), read_better
        )
        as_second = 1.0 - reference_first
        win = (as_first + as_second) / 2
        parts = {"win_rate": win, "consistency": float(as_first == as_second)}
        notes = {"reason_answer_first": reason_first, "reason_answer_second": reason_second}
        return _Judged(win, {**parts, "answer first": as_first, "answer second": as_second}, notes)

    def remarks(self, samples: Sequence[Sample]) -> dict[str, float | str]:
        """Return the judge's cost, and its agreement with human labels if there are any."""
        pairs = [
            (sample.verdict is Verdict.CORRECT, sample.parts[HUMAN] >= self.settings.threshold)
            for sample in samples
            if HUMAN in sample.parts and sample.verdict is not Verdict.FAILED
        ]
        return {
            "judge_cost": round(self._judge.spent, 6),
            "judge_prompt": self._prompt.version,
            **measure_agreement(pairs),
        }

    def manifest(self) -> dict[str, Any]:
        """Describe the settings, the judge model, and its prompt."""
        asked = {"version": self._prompt.version, "sha256": self._prompt.sha256, **self._prompt.texts}
        points = {} if self._is_pairwise else {"rubric_points": self._points}
        return super().manifest() | {"judge_model": self._model, "judge_prompt": asked, **points}

    def close(self) -> None:
        """End the connections to the judge."""
        self._judge.close()
