"""MMLU (Hendrycks et al. 2020): multiple choice over 57 subjects, by likelihood or by the written letter."""

from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import yaml
from trellis_contracts.evaluation import BenchmarkTask, MmluOrder, Sample, Score

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Message, Needs, Problem, Scored
from trellis_train.evaluate.extraction import answer_part, choice_letter
from trellis_train.evaluate.loading import Row, check_names, has_part, load_part
from trellis_train.evaluate.prompts import (
    Example,
    chat_prompt,
    drawn_rows,
    first_rows,
    plain_prompt,
    without,
)
from trellis_train.evaluate.scored import macro_average, right_or_wrong, unanswered

SHOTS = 5
#: The letters are all that is asked for.
INSTRUCTION = "Answer with the letter of the right choice alone."
_MOST_CHOICES = 26


class Mmlu:
    """``accuracy`` counts each question alike (micro), ``macro`` each subject."""

    metrics: tuple[str, ...] = ("accuracy",)
    group_kinds: tuple[str, ...] = ("subject", "category")
    samples_per_problem = 1
    default_max_tokens = 512

    def __init__(self, task: BenchmarkTask, seed: int) -> None:
        if not isinstance(task.order, MmluOrder):
            raise TypeError(f"{task.label} is no order of MMLU")
        self.label = task.label
        #: A base model goes on with the next question.
        self.stop = ["\n"]
        self.needs: Needs = "generate" if task.order.mode == "generate" else "loglikelihood"
        self._order, self._files, self._seed = task.order, task.files, seed
        self._shots = SHOTS if task.order.shots is None else task.order.shots
        self._drawn: dict[str, list[Row]] = {}

    def problems(self) -> Sequence[Problem]:
        """Return the test problems, filtered by subject if requested; choices are ``" A"``, ``" B"`` ..."""
        known = sorted({_subject(row) for row in self._rows})
        subjects = check_names(self._order.subjects, known, "subject")
        rows = (row for row in self._rows if subjects is None or _subject(row) in subjects)
        return [_problem(row) for row in rows]

    def prompt(self, problem: Problem, chat: bool) -> list[Message] | str:
        """Build the paper's prompt: ``The following are multiple choice questions (with answers) ...``."""
        subject = problem.groups["subject"]
        description = (
            "The following are multiple choice questions (with answers) about "
            f"{subject.replace('_', ' ')}.\n\n"
        )
        examples = [Example(_ask(row), _letters(row)[_right(row)]) for row in self._examples(problem)]
        question = str(problem.text)
        if not chat:
            return plain_prompt(examples, question, description=description)
        told = f"{description}{INSTRUCTION}\n\n" if self.needs == "generate" else description
        return chat_prompt(examples, question, system=self._order.system, description=told)

    def _examples(self, problem: Problem) -> list[Row]:
        """Choose examples of the same subject: the first of part ``dev``, else others of the test part."""
        subject = problem.groups["subject"]
        if not self._shots:
            return []
        if has_part(self._files, "dev"):
            return first_rows(self._dev.get(subject, []), self._shots, f"'{subject}' in the dev split")
        if subject not in self._drawn:
            same = [row for row in self._rows if _subject(row) == subject]
            self._drawn[subject] = drawn_rows(same, self._shots, seed=self._seed, name=subject)
        return without(self._drawn[subject], int(problem.key), self._shots)

    @cached_property
    def _rows(self) -> list[Row]:
        return load_part(self._files, "test")

    @cached_property
    def _dev(self) -> dict[str, list[Row]]:
        by_subject: dict[str, list[Row]] = {}
        for row in load_part(self._files, "dev"):
            by_subject.setdefault(_subject(row), []).append(row)
        return by_subject

    def score(self, problem: Problem, output: str, *, is_truncated: bool) -> Scored:
        """Score the letter that the model wrote."""
        del is_truncated
        letter = choice_letter(answer_part(output), list(problem.row["choices"]))
        return unanswered(self.metrics) if letter is None else right_or_wrong(letter == problem.gold, letter)

    def score_choices(self, problem: Problem, log_likelihoods: list[float]) -> Scored:
        """Score the likeliest letter; the first one of equals."""
        if len(log_likelihoods) != len(problem.choices):
            raise ValueError(f"{len(log_likelihoods)} likelihoods for {len(problem.choices)} choices")
        best = max(range(len(log_likelihoods)), key=log_likelihoods.__getitem__)
        letter = problem.choices[best].strip()
        scored = right_or_wrong(letter == problem.gold, letter)
        likelihoods = zip(problem.choices, log_likelihoods, strict=True)
        scored.parts.update({f"log p({choice.strip()})": value for choice, value in likelihoods})
        return scored

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the macro average over subjects."""
        macro = macro_average(samples, "subject", "macro")
        return [] if macro is None else [macro]

    def manifest(self) -> dict[str, Any]:
        """Describe the number and origin of the examples."""
        is_dev = has_part(self._files, "dev")
        drawn = "other test problems of the subject, sampled with the seed"
        return {
            "mode": self._order.mode,
            "shots": self._shots,
            "shots_from": "first dev problems of the subject" if is_dev else drawn,
        }

    def close(self) -> None:
        """Do nothing: nothing was started."""


@cache
def _categories() -> dict[str, str]:
    """Return the category of each of the 57 subjects."""
    text = files("trellis_train.evaluate").joinpath("mmlu_subjects.yaml").read_text("utf-8")
    by_category: dict[str, list[str]] = yaml.safe_load(text)
    return {subject: category for category, subjects in by_category.items() for subject in subjects}


def _problem(row: Row) -> Problem:
    letters, subject = _letters(row), _subject(row)
    if subject not in _categories():
        raise BenchmarkUnusable(f"unknown MMLU subject '{subject}' in {row.place}")
    groups = {"subject": subject, "category": _categories()[subject]}
    return Problem(
        str(row.position),
        letters[_right(row)],
        row.values,
        groups=groups,
        text=_ask(row),
        choices=[f" {letter}" for letter in letters],
    )


def _subject(row: Row) -> str:
    """Read ``subject`` on the hub, ``type`` in other copies; with ``_`` between words."""
    name = row.text("subject" if row.values.get("subject") is not None else "type")
    return name.strip().lower().replace(" ", "_")


def _letters(row: Row) -> list[str]:
    choices = row.require("choices", list)
    if not 2 <= len(choices) <= _MOST_CHOICES or not all(isinstance(choice, str) for choice in choices):
        raise BenchmarkUnusable(f"'choices' in {row.place} must be a list of 2 to {_MOST_CHOICES} strings")
    return [chr(ord("A") + number) for number in range(len(choices))]


def _right(row: Row) -> int:
    """Return the position of the correct choice, given in rows by number (from 0) or letter."""
    answer, letters = row.require("answer", int, str), _letters(row)
    if isinstance(answer, str):
        answer = letters.index(answer.strip().upper()) if answer.strip().upper() in letters else -1
    if not 0 <= answer < len(letters):
        raise BenchmarkUnusable(f"'answer' in {row.place} doesn't match any of the {len(letters)} choices")
    return int(answer)


def _ask(row: Row) -> str:
    choices = zip(_letters(row), row.values["choices"], strict=True)
    listed = "".join(f"{letter}. {choice}\n" for letter, choice in choices)
    return f"{row.text('question').strip()}\n{listed}Answer:"
