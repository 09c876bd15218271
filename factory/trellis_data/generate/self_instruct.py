"""Self-Instruct (Wang et al. 2023, https://arxiv.org/abs/2212.10560): new instructions from seed rows.

Requests go out in waves of a fixed size, and what a wave brings is looked at in the order of its requests,
so the same replies make the same rows whatever comes first and however many run at once.
"""

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from trellis_contracts.generation import Generation, SelfInstruct

from trellis_data.chat_client import Message
from trellis_data.generate.answering import answer_of, with_system
from trellis_data.generate.asking import OVER_BUDGET, Asker, Question, draw
from trellis_data.generate.generated_rows import Made, Output
from trellis_data.generate.novelty import NoveltyFilter, words_of
from trellis_data.generate.report import Stopped
from trellis_data.generate.seeds import Seed
from trellis_data.operator import OperatorProblem

#: Requests for instructions that see the same pool.
_WAVE = 8
#: Seed rows beyond these are not read: they are held in memory and compared with.
MOST_SEEDS = 20_000
_HEADING = re.compile(r"^[ \t]*###[ \t]*\d+[.:)]?[ \t]*", re.MULTILINE)


@dataclass(frozen=True)
class _Idea:
    """A new instruction."""

    text: str
    seed_rows: tuple[int, ...]
    sample: int


class SelfInstructing:
    """One run."""

    def __init__(
        self, settings: Generation, method: SelfInstruct, seeds: Iterable[Seed], asker: Asker, output: Output
    ) -> None:
        self._settings, self._method = settings, method
        self._asker, self._output = asker, output
        self._novelty = NoveltyFilter(method.max_rouge_l)
        self._seeds: list[Seed] = []
        for seed in islice(seeds, MOST_SEEDS):
            if self._novelty.add(seed.instruction):
                self._seeds.append(seed)
            else:
                output.drop("seed_like_another", (seed.position,), instruction=seed.instruction)
        if not self._seeds:
            raise OperatorProblem("no_seeds", "The seed rows contain no instructions.")
        self._made: list[str] = []
        self._requests = 0
        self._in_vain = 0

    def run(self, tick: Callable[[int], None]) -> Stopped | None:
        """Run wave by wave until there are enough rows; return why it stopped early, or None."""
        while self._output.rows < self._method.rows:
            ideas, is_over = self._find_ideas()
            is_over = self._answer(ideas) or is_over
            tick(self._output.rows)
            if is_over:
                return "cost_bound"
            if self._in_vain >= self._method.patience:
                return "nothing_new"
        return None

    def _find_ideas(self) -> tuple[list[_Idea], bool]:
        """Generate one wave of new instructions, and tell whether the budget was used up."""
        asked = [self._compose(self._requests + number) for number in range(_WAVE)]
        self._requests += _WAVE
        outcomes = self._asker.ask([question for question, _ in asked])
        ideas: list[_Idea] = []
        for (_, shown), outcome in zip(asked, outcomes, strict=True):
            before = len(ideas)
            if outcome.reply is None:
                self._output.drop(outcome.problem or "no_completion", shown)
            else:
                is_cut = outcome.reply.finish_reason == "length"
                ideas += self._read(outcome.reply.text, shown, is_cut=is_cut)
            self._in_vain = 0 if len(ideas) > before else self._in_vain + 1
        self._made += [idea.text for idea in ideas]
        return ideas, any(outcome.problem == OVER_BUDGET for outcome in outcomes)

    def _compose(self, number: int) -> tuple[Question, tuple[int, ...]]:
        """Compose a request with its own random examples; also return the seed rows among them."""
        method, drawn = self._method, random.Random(draw(self._settings.seed, "examples", number))  # noqa: S311
        seeds = drawn.sample(self._seeds, min(method.seed_examples, len(self._seeds)))
        made = drawn.sample(self._made, min(method.made_examples, len(self._made)))
        examples = [seed.instruction for seed in seeds] + made
        drawn.shuffle(examples)
        listed = "\n\n".join(f"### {place}\n{text}" for place, text in enumerate(examples, 1))
        # The examples last: they may hold braces.
        text = method.template.replace("{count}", str(method.per_request)).replace("{examples}", listed)
        question = Question((Message("user", text),), draw(self._settings.seed, "instructions", number))
        return question, tuple(seed.position for seed in seeds)

    def _read(self, text: str, shown: tuple[int, ...], *, is_cut: bool) -> list[_Idea]:
        """Extract the new instructions from a reply, up to the number that was requested."""
        parts = [part.strip() for part in _HEADING.split(text)[1:]]
        if is_cut:  # the last one may lack its end
            for part in parts[-1:] or [text]:
                self._output.drop("cut_off", shown, instruction=part)
            parts = parts[:-1]
        elif not parts:
            self._output.drop("no_instructions", shown, reply=text)
        kept: list[_Idea] = []
        for sample, part in enumerate(parts[: self._method.per_request]):
            size = len(words_of(part))
            if not self._method.shortest <= size <= self._method.longest:
                reason = "too_short" if size < self._method.shortest else "too_long"
                self._output.drop(reason, shown, instruction=part)
            elif not self._novelty.add(part):
                self._output.drop("not_new", shown, instruction=part)
            else:
                kept.append(_Idea(part, shown, sample))
        for part in parts[self._method.per_request :]:
            self._output.drop("not_asked_for", shown, instruction=part)
        return kept

    def _answer(self, ideas: list[_Idea]) -> bool:
        """Turn instructions into rows, no more than are wanted; whether the bound was reached."""
        wanted = ideas
        is_over = False
        while wanted and self._output.rows < self._method.rows:
            room = self._method.rows - self._output.rows
            now, wanted = wanted[:room], wanted[room:]
            prompts = [with_system(self._settings, (Message("user", idea.text),)) for idea in now]
            questions = [Question(prompt, draw(self._settings.seed, "answer", prompt)) for prompt in prompts]
            for idea, question, outcome in zip(now, questions, self._asker.ask(questions), strict=True):
                answer, problem = answer_of(outcome)
                is_over = is_over or problem == OVER_BUDGET
                if answer is None:
                    self._output.drop(problem, idea.seed_rows, instruction=idea.text)
                else:
                    row = Made(question.messages, answer, idea.seed_rows, idea.sample, question.seed)
                    self._output.add(row)
        for idea in wanted:
            self._output.drop("more_than_wanted", idea.seed_rows, instruction=idea.text)
        return is_over
