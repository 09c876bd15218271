"""Scores the letter that an answer gives: rows have a list of choices."""

from typing import Any, cast

from trellis_contracts.evaluation import BenchmarkTask, ChoiceScorer

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Problem, Scored
from trellis_train.evaluate.custom.scorer import PlainScorer
from trellis_train.evaluate.extraction import choice_letter
from trellis_train.evaluate.scored import right_or_wrong, unanswered
from trellis_train.rewards.answers import squeeze

_MOST_CHOICES = 26


class ChosenAnswers(PlainScorer):
    """The letter that the answer gives is that of the right choice.

    The row names the right choice by its words, its letter, or its number, from 0; words come first.
    """

    def __init__(self, task: BenchmarkTask) -> None:
        super().__init__(task)
        self._column = cast("ChoiceScorer", self.settings).choices_column

    def reference(self, problem: Problem, place: str) -> str:
        """Return the letter of the correct choice; requires 2 to 26 choices, one of them correct."""
        choices = problem.row.get(self._column)
        if not isinstance(choices, list) or not 2 <= len(choices) <= _MOST_CHOICES:
            raise BenchmarkUnusable(
                f"'{self._column}' in {place} must be a list of 2 to {_MOST_CHOICES} choices"
            )
        number = right_choice(problem.gold, choices)
        if number is None:
            raise BenchmarkUnusable(f"the answer in {place} doesn't match any of its {len(choices)} choices")
        return letter_of(number)

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score 1 or 0."""
        letter = choice_letter(answer, [str(choice) for choice in problem.row[self._column]])
        return unanswered(self.metrics) if letter is None else right_or_wrong(letter == problem.gold, letter)


def letter_of(number: int) -> str:
    """Return the letter of a choice: A for 0, B for 1 ..."""
    return chr(ord("A") + number)


def right_choice(answer: str, choices: list[Any]) -> int | None:
    """Return the position of the choice that the answer names; None if there is none or no unique one."""
    wanted = squeeze(answer)
    same = [number for number, choice in enumerate(choices) if squeeze(str(choice)) == wanted]
    if same:
        return same[0] if len(same) == 1 else None
    if len(wanted) == 1 and wanted.upper() in map(letter_of, range(len(choices))):
        return ord(wanted.upper()) - ord("A")
    if wanted.isdecimal() and wanted.isascii() and int(wanted[:4]) < len(choices):
        return int(wanted[:4])
    return None


def list_choices(choices: list[Any]) -> str:
    """Format the choices for a prompt, one per line after its letter."""
    return "\n".join(f"{letter_of(number)}. {choice}" for number, choice in enumerate(choices))
