"""Rejection sampling: several answers to each prompt, of which the good ones stay."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from trellis_contracts.generation import Generation, RejectionSampling

from trellis_data.generate.answering import answer_of, with_system
from trellis_data.generate.asking import OVER_BUDGET, Asker, Outcome, Question, draw
from trellis_data.generate.checks import Attempt, can_score, check_judge, score
from trellis_data.generate.generated_rows import Made, Output
from trellis_data.generate.report import Stopped
from trellis_data.generate.seeds import Seed
from trellis_data.operator import Context
from trellis_data.scoring.scorer import Verdict

#: Questions that go out together, for each that is under way at once: the pool is seldom idle.
_DEPTH = 4


class _Answer(NamedTuple):
    """An answer to a prompt, and how good it is."""

    sample: int
    question: Question
    text: str
    verdict: Verdict


class RejectionSampled:
    """One run."""

    def __init__(
        self,
        settings: Generation,
        method: RejectionSampling,
        seeds: Iterable[Seed],
        asker: Asker,
        output: Output,
        context: Context,
    ) -> None:
        check_judge(method.check, context)
        self._settings, self._method = settings, method
        self._seeds, self._asker, self._output, self._context = seeds, asker, output, context

    def run(self, tick: Callable[[int], None]) -> Stopped | None:
        """Run through the prompts wave by wave until all seeds are done; return why it stopped early."""
        size = max(1, _DEPTH * self._settings.concurrency // self._method.samples)
        waves, done, stopped = _waves(self._seeds, size), 0, None
        for wave in waves:
            if self._pass(wave):
                stopped = "cost_bound"
            done += len(wave)
            tick(done)
            if stopped:
                # What cannot be asked is told of too.
                for seed in (seed for rest in waves for seed in rest):
                    self._output.drop("not_asked", (seed.position,))
                return "cost_bound"
        return None

    def _pass(self, wave: Sequence[Seed]) -> bool:
        """Ask, score and choose; whether a bound was reached."""
        seeds = [seed for seed in wave if self._can_pass(seed)]
        questions = [question for seed in seeds for question in self._questions(seed)]
        outcomes = self._asker.ask(questions)
        number = self._method.samples
        asked: list[tuple[Seed, list[_Answer]]] = []
        for at, seed in enumerate(seeds):
            mine = slice(at * number, (at + 1) * number)
            if any(outcome.problem == OVER_BUDGET for outcome in outcomes[mine]):
                # The best of some, or a share of them, is not what was wanted; the next run has the others.
                self._output.drop(OVER_BUDGET, (seed.position,))
            else:
                asked.append((seed, self._answers(seed, questions[mine], outcomes[mine])))
        is_judged = self._judge(asked)
        return not is_judged or any(outcome.problem == OVER_BUDGET for outcome in outcomes)

    def _can_pass(self, seed: Seed) -> bool:
        if can_score(self._method.check, seed.reference):
            return True
        self._output.drop("no_reference", (seed.position,))
        return False

    def _judge(self, asked: Sequence[tuple[Seed, list[_Answer]]]) -> bool:
        """Score and choose; whether the judge's own bound left room for that."""
        attempts = [
            Attempt(seed.instruction, answer.text, seed.reference)
            for seed, answers in asked
            for answer in answers
        ]
        verdicts = score(self._method.check, attempts, self._context)
        # A judge that was away for some is asked again by the next run.
        if lost := sum(verdict.problem == "unreachable" for verdict in verdicts):
            self._asker.tally.problems["judge_unreachable"] += lost
        rest = iter(verdicts)
        for seed, answers in asked:
            self._choose(seed, [answer._replace(verdict=next(rest)) for answer in answers])
        return all(verdict.problem != OVER_BUDGET for verdict in verdicts)

    def _questions(self, seed: Seed) -> Iterator[Question]:
        prompt = with_system(self._settings, seed.prompt)
        for sample in range(self._method.samples):
            yield Question(prompt, draw(self._settings.seed, seed.position, sample))

    def _answers(
        self, seed: Seed, questions: Sequence[Question], outcomes: Sequence[Outcome]
    ) -> list[_Answer]:
        """Return the answers that can be scored; record the others as dropped."""
        found = []
        for sample, (question, outcome) in enumerate(zip(questions, outcomes, strict=True)):
            text, problem = answer_of(outcome)
            if text is None:
                self._output.drop(problem, (seed.position,), sample=sample)
            else:
                found.append(_Answer(sample, question, text, Verdict(None)))
        return found

    def _choose(self, seed: Seed, answers: list[_Answer]) -> None:
        """Keep what passes, as the method says; the pass rate is that of all answers with a score."""
        scored = [(answer.verdict.score, answer) for answer in answers if answer.verdict.score is not None]
        passed = [(reward, answer) for reward, answer in scored if reward >= self._method.threshold]
        rate = len(passed) / len(scored) if scored else None
        chosen = passed
        if self._method.keep == "best":
            chosen = sorted(passed, key=lambda each: -each[0])[:1]
        kept: set[str] = set()
        for reward, answer in chosen:
            if answer.text in kept:
                self._drop("duplicate", seed, answer, rate)
                continue
            kept.add(answer.text)
            row = Made(
                answer.question.messages, answer.text, (seed.position,), answer.sample, answer.question.seed,
                seed.reference, reward, rate,
            )  # fmt: skip
            self._output.add(row)
        taken = {answer.sample for _, answer in chosen}
        for answer in answers:
            if answer.sample not in taken:
                self._drop(self._why_not(answer), seed, answer, rate)

    def _why_not(self, answer: _Answer) -> str:
        if answer.verdict.score is None:
            return answer.verdict.problem or "no_score"
        return "not_the_best" if answer.verdict.score >= self._method.threshold else "below_threshold"

    def _drop(self, reason: str, seed: Seed, answer: _Answer, rate: float | None) -> None:
        self._output.drop(
            reason, (seed.position,), sample=answer.sample, answer=answer.text,
            reward=answer.verdict.score, pass_rate=rate,
        )  # fmt: skip


def _waves(seeds: Iterable[Seed], size: int) -> Iterator[list[Seed]]:
    every = iter(seeds)
    while wave := list(islice(every, size)):
        yield wave
