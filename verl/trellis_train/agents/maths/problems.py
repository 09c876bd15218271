"""Word problems by seed, in the manner of GSM8K (arXiv 2110.14168): question, working, ``#### n``."""

import random
from dataclasses import dataclass

_PEOPLE = ("Ada", "Ben", "Chen", "Dana", "Emil", "Fatima", "Goran", "Hana")
_THINGS = ("apples", "books", "coins", "eggs", "pens", "shells", "stamps", "tickets")


@dataclass(frozen=True)
class Problem:
    """A question and its answer with the working before it."""

    question: str
    answer: str

    @property
    def result(self) -> str:
        """The number alone."""
        return self.answer.rpartition("#### ")[2]


def make_problems(count: int, *, seed: int, split: str) -> list[Problem]:
    """Generate distinct problems; splits never share any, as their numbers differ in parity."""
    draw = random.Random(f"{seed} {split}")  # noqa: S311 - reproducible, not secret
    parity = 0 if split == "train" else 1
    found: dict[str, Problem] = {}
    while len(found) < count:
        problem = _make(draw, parity)
        found[problem.question] = problem
    return list(found.values())


def _make(draw: random.Random, parity: int) -> Problem:
    person, other = draw.sample(_PEOPLE, 2)
    thing = draw.choice(_THINGS)
    # The sum of the first two decides the split.
    first = draw.randint(2, 40)
    second = draw.randint(1, 20) * 2 + (first + parity) % 2
    factor = draw.randint(2, 6)
    kind = draw.randrange(3)
    if kind == 0:
        result = first + second
        question = f"{person} has {first} {thing} and gets {second} more. How many {thing} has {person} now?"
        working = f"{first} + {second} = {result}"
    elif kind == 1:
        total = first + second
        result = total * factor
        question = (
            f"{person} has {first} {thing} and {other} has {second}. They put them together and buy until "
            f"there are {factor} times as many. How many {thing} are there?"
        )
        working = f"{first} + {second} = {total}, {total} * {factor} = {result}"
    else:
        total = first + second
        result = total - min(first, second)
        question = (
            f"{person} buys {first} {thing}, then {second}, and gives {min(first, second)} to {other}. "
            f"How many {thing} are left?"
        )
        working = f"{first} + {second} = {total}, {total} - {min(first, second)} = {result}"
    return Problem(question, f"{working}\n#### {result}")
