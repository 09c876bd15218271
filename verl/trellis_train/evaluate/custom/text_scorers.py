"""Scorers that compare answer and reference as texts."""

from typing import cast

import regex
from trellis_contracts.evaluation import BenchmarkTask, ContainsScorer, ExactScorer, RegexScorer

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Problem, Scored
from trellis_train.evaluate.custom.scorer import PlainScorer
from trellis_train.evaluate.scored import failed, right_or_wrong, unanswered
from trellis_train.rewards.answers import as_number, squeeze
from trellis_train.rewards.functions import contains

#: Of one answer: a pattern may take for ever on some texts.
PATTERN_TIMEOUT_S = 5.0


class ExactAnswers(PlainScorer):
    """The answer is the reference, white space aside."""

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score 1 or 0."""
        found, wanted = squeeze(answer), squeeze(problem.gold)
        if not found:
            return unanswered(self.metrics)
        if cast("ExactScorer", self.settings).ignore_case:
            return right_or_wrong(found.casefold() == wanted.casefold(), found)
        return right_or_wrong(found == wanted, found)


class ContainedAnswers(PlainScorer):
    """The answer holds the reference as a word of its own."""

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score 1 or 0."""
        if not answer.strip():
            return unanswered(self.metrics)
        texts = answer, problem.gold
        if cast("ContainsScorer", self.settings).ignore_case:
            texts = answer.casefold(), problem.gold.casefold()
        is_right = bool(contains(*texts))
        return right_or_wrong(is_right, problem.gold if is_right else "")


class MatchedAnswers(PlainScorer):
    """The last match of a pattern is the reference, as a number where both are numbers."""

    def __init__(self, task: BenchmarkTask) -> None:
        super().__init__(task)
        try:
            self._pattern = regex.compile(cast("RegexScorer", self.settings).pattern)
        except regex.error as error:
            raise BenchmarkUnusable(
                f"the pattern of '{task.label}' is not a valid regular expression: {error}"
            ) from error

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score 1 or 0; FAILED if the pattern takes too long."""
        last = None
        try:
            for match in self._pattern.finditer(answer, timeout=PATTERN_TIMEOUT_S):
                last = match
        except TimeoutError:
            return failed(
                self.metrics, f"the pattern took longer than {PATTERN_TIMEOUT_S:g} s on this answer"
            )
        if last is None:
            return unanswered(self.metrics)
        found = (last.group(1) if self._pattern.groups else last.group(0)) or ""
        numbers = as_number(found), as_number(problem.gold)
        is_same = numbers[0] == numbers[1] if None not in numbers else squeeze(found) == squeeze(problem.gold)
        return right_or_wrong(is_same, squeeze(found))
