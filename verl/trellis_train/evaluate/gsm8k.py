"""GSM8K (Cobbe et al. 2021): grade-school problems that are answered with a number."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from trellis_contracts.evaluation import BenchmarkTask, Gsm8kOrder, Sample, Score, Verdict
from trellis_recipes.data.reference_answers import find_gsm8k_answer

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Message, Needs, Problem, Scored
from trellis_train.evaluate.extraction import answer_part, gsm8k_flexible, gsm8k_strict
from trellis_train.evaluate.loading import Row, load_part
from trellis_train.evaluate.numbers import read_number
from trellis_train.evaluate.prompts import Example, chat_prompt, first_rows, plain_prompt
from trellis_train.evaluate.scored import unanswered

#: What base models are shown, as lm-evaluation-harness does; chat models are told instead.
PLAIN_SHOTS, CHAT_SHOTS = 5, 0
INSTRUCTION = (
    "Solve the problem step by step. On the last line, write #### and the final answer as a number: #### 12"
)


class Gsm8k:
    """Two metrics: ``strict`` wants ``#### 18`` or a box, ``flexible`` else takes the last number."""

    metrics: tuple[str, ...] = ("strict", "flexible")
    group_kinds: tuple[str, ...] = ()
    needs: Needs = "generate"
    samples_per_problem = 1
    default_max_tokens = 512

    def __init__(self, task: BenchmarkTask, seed: int) -> None:
        del seed  # nothing is drawn: the examples are the first of the training part
        if not isinstance(task.order, Gsm8kOrder):
            raise TypeError(f"{task.label} is no order of GSM8K")
        self.label = task.label
        self.stop = ["Question:"]
        self._order, self._files = task.order, task.files

    def problems(self) -> Sequence[Problem]:
        """Return the test problems; raises for a row without question or final number."""
        found = []
        for row in load_part(self._files, "test"):
            gold = find_gsm8k_answer(row.text("answer"))
            if gold is None or read_number(gold) is None:
                raise BenchmarkUnusable(f"'answer' in {row.place} does not end with #### and a number")
            found.append(Problem(str(row.position), gold, row.values, text=row.text("question")))
        return found

    def prompt(self, problem: Problem, chat: bool) -> list[Message] | str:
        """Build ``Question: ... Answer:`` as in lm-evaluation-harness, or a question with an instruction."""
        question = str(problem.text)
        shots = self._order.shots
        if chat:
            examples = self._examples(CHAT_SHOTS if shots is None else shots)
            told = [Example(f"{each.question}\n\n{INSTRUCTION}", each.answer) for each in examples]
            return chat_prompt(told, f"{question}\n\n{INSTRUCTION}", system=self._order.system)
        examples = self._examples(PLAIN_SHOTS if shots is None else shots)
        asked = [Example(_ask(each.question), each.answer) for each in examples]
        return plain_prompt(asked, _ask(question))

    def _examples(self, count: int) -> list[Example]:
        rows = first_rows(self._training, count, "the part 'train'") if count else []
        return [Example(row.text("question"), row.text("answer")) for row in rows]

    @cached_property
    def _training(self) -> list[Row]:
        return load_part(self._files, "train")

    def score(self, problem: Problem, output: str, *, is_truncated: bool) -> Scored:
        """Compare both extractions as numbers: 18, 18.00, $18 and 36/2 are the same."""
        del is_truncated
        text, gold = answer_part(output), read_number(problem.gold)
        strict, flexible = gsm8k_strict(text), gsm8k_flexible(text)
        if flexible is None:
            return unanswered(self.metrics)
        parts = {
            "strict": float(strict is not None and read_number(strict) == gold),
            "flexible": float(read_number(flexible) == gold),
        }
        if strict is None:
            return Scored(Verdict.UNANSWERED, 0.0, parts=parts, notes={"flexible": flexible})
        verdict = Verdict.CORRECT if parts["strict"] else Verdict.WRONG
        return Scored(verdict, parts["strict"], strict, parts=parts)

    def score_choices(self, problem: Problem, log_likelihoods: list[float]) -> Scored:
        """Raise ``NotImplementedError``: there are no choices."""
        raise NotImplementedError("GSM8K is generated")

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Return nothing more: both metrics are means."""
        del samples
        return []

    def manifest(self) -> dict[str, Any]:
        """Describe the number and origin of the examples."""
        shots = self._order.shots
        return {
            "shots": {"plain": PLAIN_SHOTS, "chat": CHAT_SHOTS} if shots is None else shots,
            "shots_from": "first rows of the train split",
            "extraction": "strict: after the last #### or in the last box; flexible: or the last number",
            "instruction": INSTRUCTION,
        }

    def close(self) -> None:
        """Do nothing: nothing was started."""


def _ask(question: str) -> str:
    return f"Question: {question}\nAnswer:"
