"""A dataset of the platform as a benchmark."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from trellis_contracts.evaluation import BenchmarkTask, ChoiceScorer, Sample, Score

from trellis_train.evaluate.benchmark import BenchmarkUnusable, HasRemarks, Message, Needs, Problem, Scored
from trellis_train.evaluate.custom.choices import list_choices
from trellis_train.evaluate.custom.dataset_samples import fill, read_answer, read_prompt
from trellis_train.evaluate.custom.scorer import custom_order, open_scorer
from trellis_train.evaluate.extraction import answer_part
from trellis_train.evaluate.loading import Row, has_part, load_part
from trellis_train.evaluate.prompts import drawn_rows, first_rows, without

PART, SHOTS_PART = "test", "train"
_NO_GROUP = "-"


class Custom:
    """Rows with a prompt and, for most scorers, a reference answer."""

    needs: Needs = "generate"
    samples_per_problem = 1
    default_max_tokens = 512

    def __init__(self, task: BenchmarkTask, seed: int) -> None:
        self.label = task.label
        self._order, self._files, self._seed = custom_order(task), task.files, seed
        self._format = None if task.files is None else task.files.format
        self._scorer = open_scorer(task)
        self.metrics = self._scorer.metrics
        group = self._order.group_column
        self.group_kinds = () if group is None else (group,)
        #: A plain prompt that shows solved rows would be continued with another.
        self.stop = ["\n\n"] if self._order.shots else []

    def problems(self) -> Sequence[Problem]:
        """Return all rows; ``BenchmarkUnusable`` names the first that has no prompt or no reference."""
        return [self._problem(row) for row in self._rows]

    def _problem(self, row: Row) -> Problem:
        messages = self._ask(row)
        answer = read_answer(row, self._order, self._format)
        if answer is None and self._scorer.needs_answer:
            raise BenchmarkUnusable(f"{row.place} has no reference answer")
        text = "\n\n".join(message["content"] for message in messages)
        groups = {kind: self._group(row, kind) for kind in self.group_kinds}
        problem = Problem(
            str(row.position), answer or "", row.values, groups=groups, messages=messages, text=text
        )
        return replace(problem, gold=self._scorer.reference(problem, row.place))

    def _group(self, row: Row, column: str) -> str:
        if column not in row.values:
            raise BenchmarkUnusable(f"{row.place} has no column '{column}' to group scores by")
        value = row.values[column]
        return _NO_GROUP if value is None else str(value)

    def _ask(self, row: Row) -> list[Message]:
        """Build the row's prompt; choices go where the template puts them, else after the question."""
        scorer, template = self._order.scorer, self._order.template
        choices = row.values.get(scorer.choices_column) if isinstance(scorer, ChoiceScorer) else None
        if not isinstance(scorer, ChoiceScorer) or not isinstance(choices, list):
            return read_prompt(row, self._order, self._format)
        listed = list_choices(choices)
        if template is not None:
            return [{"role": "user", "content": fill(template, row, {scorer.choices_column: listed})}]
        *before, last = read_prompt(row, self._order, self._format)
        return [*before, {**last, "content": f"{last['content']}\n{listed}"}]

    def prompt(self, problem: Problem, chat: bool) -> list[Message] | str:
        """Build the prompt from solved rows, if any were asked for, and the row's own prompt."""
        shown = [
            (self._ask(row), read_answer(row, self._order, self._format) or "")
            for row in self._examples(problem)
        ]
        own = problem.messages or []
        if not chat:
            solved = "".join(f"{_plain(asked)}\n{answer}\n\n" for asked, answer in shown)
            return f"{solved}{_plain(own)}" + ("\n" if shown else "")
        has_system = bool(own) and own[0]["role"] == "system"
        system = self._order.system
        turns: list[Message] = (
            [{"role": "system", "content": system}] if system else own[:1] if has_system else []
        )
        for asked, answer in shown:
            turns += [message for message in asked if message["role"] != "system"]
            turns.append({"role": "assistant", "content": answer})
        return turns + own[1 if has_system else 0 :]

    def _examples(self, problem: Problem) -> list[Row]:
        count = self._order.shots or 0
        if not count:
            return []
        if has_part(self._files, SHOTS_PART):
            return first_rows(self._training, count, f"the part '{SHOTS_PART}'")
        return without(self._drawn, int(problem.key), count)

    @cached_property
    def _rows(self) -> list[Row]:
        return load_part(self._files, PART)

    @cached_property
    def _training(self) -> list[Row]:
        return load_part(self._files, SHOTS_PART)

    @cached_property
    def _drawn(self) -> list[Row]:
        return drawn_rows(self._rows, self._order.shots or 0, seed=self._seed, name=self._order.dataset)

    def score(self, problem: Problem, output: str, *, is_truncated: bool) -> Scored:
        """Score the part of the output after the thinking."""
        del is_truncated
        return self._scorer.score(problem, answer_part(output))

    def score_choices(self, problem: Problem, log_likelihoods: list[float]) -> Scored:
        """Raise ``NotImplementedError``: answers are generated here."""
        raise NotImplementedError("a dataset's answers are generated")

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the aggregate scores that the scorer adds."""
        return self._scorer.finish(samples)

    def remarks(self, samples: Sequence[Sample]) -> dict[str, float | str]:
        """Return the values that the scorer adds besides scores."""
        return self._scorer.remarks(samples) if isinstance(self._scorer, HasRemarks) else {}

    def manifest(self) -> dict[str, Any]:
        """Describe columns, template, scorer and examples for the manifest."""
        order = self._order
        shots_from = f"first rows of the {SHOTS_PART} split"
        if not has_part(self._files, SHOTS_PART):
            shots_from = "other rows, sampled with the seed"
        return {
            "dataset": order.dataset,
            "columns": dict(order.columns),
            "template": order.template,
            "shots": order.shots or 0,
            **({"shots_from": shots_from} if order.shots else {}),
            **self._scorer.manifest(),
        }

    def close(self) -> None:
        """End what the scorer started."""
        self._scorer.close()


def _plain(messages: Sequence[Message]) -> str:
    return "\n\n".join(message["content"] for message in messages)
