"""Scorers that compare what answer and reference mean: numbers, expressions, JSON."""

import json
from fractions import Fraction
from typing import cast

from jsonschema import SchemaError
from jsonschema.validators import validator_for
from trellis_contracts.evaluation import BenchmarkTask, JsonScorer, NumericScorer
from trellis_recipes.data.reference_answers import find_reference_answer

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Problem, Scored
from trellis_train.evaluate.custom.scorer import PlainScorer
from trellis_train.evaluate.extraction import last_number, math_answer
from trellis_train.evaluate.math_answers import are_same_answers
from trellis_train.evaluate.numbers import read_number
from trellis_train.evaluate.scored import right_or_wrong, unanswered
from trellis_train.rewards.answers import squeeze
from trellis_train.rewards.functions import json_schema
from trellis_train.rewards.math_check import TIMEOUT_S, end_children


class NumericAnswers(PlainScorer):
    """The answer's last number is the reference's, within a tolerance."""

    def reference(self, problem: Problem, place: str) -> str:
        """Return the number at the end of the reference."""
        number = last_number(find_reference_answer(problem.gold)) or last_number(problem.gold)
        if number is None:
            raise BenchmarkUnusable(f"the answer in {place} contains no number")
        return number

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score 1 or 0."""
        found = last_number(answer)
        if found is None:
            return unanswered(self.metrics)
        value, wanted = read_number(found), read_number(problem.gold)
        if value is None or wanted is None:
            raise ValueError("a number that was found cannot be read")
        tolerance = Fraction(cast("NumericScorer", self.settings).tolerance)
        return right_or_wrong(abs(value - wanted) <= tolerance * abs(wanted), found)


class MathAnswers(PlainScorer):
    r"""The answer equals the reference as an expression; it stands in a box, after a phrase, or alone."""

    def reference(self, problem: Problem, place: str) -> str:
        """Return the final answer of the reference."""
        del place
        return find_reference_answer(problem.gold)

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score 1 or 0."""
        found = math_answer(answer) or answer.strip()
        if not found:
            return unanswered(self.metrics)
        is_same = are_same_answers(found, problem.gold, str(problem.text or ""))
        if is_same is None:
            note = f"the answer could not be compared within {TIMEOUT_S:g} s"
            return right_or_wrong(False, found, comparison=note)
        return right_or_wrong(is_same, found)

    def close(self) -> None:
        """End the processes that compare."""
        end_children()


class JsonAnswers(PlainScorer):
    """The answer, or its last json code block, is JSON: of a schema, equal to the reference, or both."""

    def __init__(self, task: BenchmarkTask) -> None:
        super().__init__(task)
        settings = cast("JsonScorer", self.settings)
        self.needs_answer = settings.equals_answer
        self._schema = settings.schema_text or "{}"
        try:
            schema = json.loads(self._schema)
            validator_for(schema).check_schema(schema)
        except (ValueError, SchemaError) as error:
            raise BenchmarkUnusable(f"the schema of '{task.label}' is invalid: {error}") from error

    def reference(self, problem: Problem, place: str) -> str:
        """Return the reference, which must be JSON if answers must equal it."""
        if self.needs_answer:
            try:
                json.loads(problem.gold)
            except (ValueError, RecursionError) as error:
                raise BenchmarkUnusable(f"the answer in {place} is not JSON: {error}") from error
        return problem.gold

    def score(self, problem: Problem, answer: str) -> Scored:
        """Score 1 or 0; UNANSWERED where there is no JSON at all."""
        if not json_schema(answer, "", schema="{}"):
            return unanswered(self.metrics)
        value = json_schema(answer, problem.gold, schema=self._schema, equals_answer=self.needs_answer)
        return right_or_wrong(bool(value), squeeze(answer))
