"""MATH (Hendrycks et al. 2021) and its 500 problems of Lightman et al. (2023): competition mathematics."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from trellis_contracts.evaluation import BenchmarkTask, MathOrder, Sample, Score
from trellis_recipes.data.reference_answers import find_boxed

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Message, Needs, Problem, Scored
from trellis_train.evaluate.extraction import answer_part, math_answer
from trellis_train.evaluate.loading import Row, check_names, load_part
from trellis_train.evaluate.math_answers import are_same_answers
from trellis_train.evaluate.prompts import Example, chat_prompt, plain_prompt
from trellis_train.evaluate.scored import right_or_wrong, unanswered
from trellis_train.rewards.math_check import TIMEOUT_S, end_children

PLAIN_SHOTS, CHAT_SHOTS = 4, 0
INSTRUCTION = r"Reason step by step, and put your final answer within \boxed{}."


class CompetitionMath:
    """One metric, ``accuracy``: the answer equals the reference as an expression."""

    metrics: tuple[str, ...] = ("accuracy",)
    group_kinds: tuple[str, ...] = ("level", "type")
    needs: Needs = "generate"
    samples_per_problem = 1
    default_max_tokens = 2048

    def __init__(self, task: BenchmarkTask, seed: int) -> None:
        del seed  # nothing is drawn: the examples are fixed
        if not isinstance(task.order, MathOrder):
            raise TypeError(f"{task.label} is no order of MATH")
        self.label = task.label
        self.stop = ["Problem:"]
        self._order, self._files = task.order, task.files
        if (task.order.shots or 0) > len(_examples()):
            raise BenchmarkUnusable(
                f"MATH has only {len(_examples())} few-shot examples, not {task.order.shots}"
            )

    def problems(self) -> Sequence[Problem]:
        """Return the problems of the test part, filtered by level and type if requested."""
        rows = load_part(self._files, "test")
        types = check_names(self._order.types, sorted({_type(row) for row in rows}), "type")
        levels = None if self._order.levels is None else {f"Level {level}" for level in self._order.levels}
        return [
            self._problem(row)
            for row in rows
            if (types is None or _type(row) in types) and (levels is None or _level(row) in levels)
        ]

    def _problem(self, row: Row) -> Problem:
        gold = row.values.get("answer")
        if gold is None:
            gold = find_boxed(row.text("solution"))
        if not isinstance(gold, str) or not gold.strip():
            raise BenchmarkUnusable(
                f"'solution' in {row.place} has no \\boxed answer, and there is no 'answer'"
            )
        key = row.values.get("unique_id")
        groups = {"level": _level(row), "type": _type(row)}
        return Problem(
            str(row.position if key is None else key),
            gold.strip(),
            row.values,
            groups=groups,
            text=row.text("problem"),
        )

    def prompt(self, problem: Problem, chat: bool) -> list[Message] | str:
        """Build the prompt: Lewkowycz et al.'s four original examples, or for chat with an instruction."""
        shots = self._order.shots
        question = str(problem.text)
        if chat:
            examples = _examples()[: CHAT_SHOTS if shots is None else shots]
            told = [Example(f"{each.question}\n\n{INSTRUCTION}", each.answer) for each in examples]
            return chat_prompt(told, f"{question}\n\n{INSTRUCTION}", system=self._order.system)
        examples = _examples()[: PLAIN_SHOTS if shots is None else shots]
        asked = [Example(_ask(each.question), each.answer) for each in examples]
        return plain_prompt(asked, _ask(question))

    def score(self, problem: Problem, output: str, *, is_truncated: bool) -> Scored:
        """Compare answers in a child process; exceeding the time limit counts as wrong, with a note."""
        del is_truncated
        found = math_answer(answer_part(output))
        if found is None:
            return unanswered(self.metrics)
        is_same = are_same_answers(found, problem.gold, str(problem.text))
        if is_same is None:
            note = f"the answer could not be compared within {TIMEOUT_S:g} s"
            return right_or_wrong(False, found, comparison=note)
        return right_or_wrong(is_same, found)

    def score_choices(self, problem: Problem, log_likelihoods: list[float]) -> Scored:
        """Raise ``NotImplementedError``: there are no choices."""
        raise NotImplementedError("MATH is generated")

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Return nothing more: accuracy is a mean."""
        del samples
        return []

    def manifest(self) -> dict[str, Any]:
        """Describe the number and origin of the examples."""
        shots = self._order.shots
        return {
            "shots": {"plain": PLAIN_SHOTS, "chat": CHAT_SHOTS} if shots is None else shots,
            "shots_from": "Lewkowycz et al. 2022, appendix D.2",
            "extraction": r"the last \boxed{}, else after 'the final answer is', #### or 'the answer is'",
            "comparison": f"math-verify, at most {TIMEOUT_S:g} s each",
            "instruction": INSTRUCTION,
        }

    def close(self) -> None:
        """End the processes that compare."""
        end_children()


@cache
def _examples() -> list[Example]:
    text = files("trellis_train.evaluate").joinpath("math_examples.yaml").read_text("utf-8")
    return [Example(each["problem"], each["solution"]) for each in yaml.safe_load(text)]


def _ask(problem: str) -> str:
    return f"Problem:\n{problem}\n\nSolution:"


def _type(row: Row) -> str:
    """Read ``type`` in MATH, ``subject`` in MATH-500."""
    return row.text("type" if "type" in row.values else "subject")


def _level(row: Row) -> str:
    """Read ``Level 3`` in MATH, 3 in MATH-500; some rows of MATH say ``Level ?``."""
    value = row.require("level", int, str)
    return f"Level {value}" if isinstance(value, int) else value
