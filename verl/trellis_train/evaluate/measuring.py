"""One benchmark of a run: its requests, the scoring of their answers, its samples and its result."""

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from trellis_contracts.evaluation import BenchmarkResult, BenchmarkTask, Sample, Verdict
from trellis_evaluation.statistics import summarise

from trellis_train.evaluate.benchmark import BenchmarkUnusable, HasRemarks, Problem, Scored, open_benchmark
from trellis_train.evaluate.drawing import choose_seed, draw
from trellis_train.evaluate.inference import Answer, Generation
from trellis_train.evaluate.likelihoods import Likelihood
from trellis_train.evaluate.manifest import fingerprint
from trellis_train.evaluate.rendering import Prompt, Renderer
from trellis_train.evaluate.reporting import Reporter, Tally
from trellis_train.evaluate.writing import SampleLog

logger = logging.getLogger(__name__)

#: Answers of a judge that are waited for at a time.
_JUDGED_AT_A_TIME = 8
#: Answers that may wait to be scored before the engine is held: they would be lost by a stop.
_MOST_UNSCORED = 64
#: For answers that are being scored when the run is asked to stop.
STOP_GRACE_S = 30.0


@dataclass(frozen=True)
class Flight:
    """A generation that has been asked for."""

    position: int
    number: int
    problem: Problem
    prompt: str
    prompt_tokens: int


class Measurement:
    """A benchmark as it is measured: ``load``, ``prepare``, then requests and answers, then ``finish``."""

    def __init__(self, task: BenchmarkTask, seed: int, reporter: Reporter) -> None:
        self.label = task.label
        self._task, self._seed, self._reporter = task, seed, reporter
        self._benchmark = open_benchmark(task, seed)
        self._tally = Tally(self._benchmark.metrics)
        self._flights: dict[str, Flight] = {}
        self._scoring: dict[Future[Scored], tuple[Flight, Answer]] = {}
        self._done: set[tuple[int, int]] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._started: float | None = None
        self.prompts_sha256 = ""

    def load(self) -> None:
        """Read and draw the problems; ``BenchmarkUnusable`` where they cannot be had."""
        order = self._task.order
        self.problems = draw(self._benchmark.problems(), order.limit, self._seed)
        if not self.problems:
            raise BenchmarkUnusable(f"{self.label}: no problem matches these settings")
        self.total = len(self.problems) * self._benchmark.samples_per_problem

    def prepare(self, tokenizer: Any, output_dir: Path, identity: dict[str, Any]) -> None:
        """Write the prompts once, for their hash, and take up what earlier attempts have left.

        ``identity`` is what else decides the samples: weights and engine.
        """
        self._renderer = Renderer(tokenizer, self._benchmark, self._task.order)
        self.prompts_sha256 = self._hash_prompts()
        known = fingerprint(self._task, self._seed, identity, self.prompts_sha256)
        self._log = SampleLog(output_dir, self.label, known)
        self._log.open(self._recall)
        if self._log.is_done:
            self._done = {(place, number) for place, number, _ in self._places()}
            self._reporter.done += self.total

    @property
    def is_random(self) -> bool:
        """Whether answers are sampled, so that batches must not mix them with greedy ones."""
        return self._task.order.decoding.temperature > 0 and self._benchmark.needs == "generate"

    @property
    def is_measured(self) -> bool:
        """Whether every sample is written."""
        return len(self._done) == self.total

    @property
    def result(self) -> BenchmarkResult | None:
        """There when the benchmark is done."""
        return self._log.state.result if self._log.is_done else None

    def requests(self) -> Iterator[tuple[str, Generation | Likelihood]]:
        """Yield requests for missing samples; each one must be answered by ``take`` or ``refuse``."""
        for position, number, problem in self._places():
            if (position, number) in self._done:
                continue
            self._started = self._started or time.monotonic()
            id_ = f"{self.label}:{position}:{number}"
            prompt, request = self._ask(problem, number)
            self._flights[id_] = Flight(position, number, problem, prompt.text, len(prompt.tokens))
            yield id_, request

    def take(self, answer: Answer) -> None:
        """Score an answer of the engine, beside it where that may take long."""
        flight = self._flights.pop(answer.id)
        if answer.error is not None:
            self._write(flight, answer, _failed(answer.error))
        elif self._benchmark.needs == "loglikelihood":
            values = [each.value for each in answer.likelihoods]
            self._write(flight, answer, self._score_choices(flight.problem, values))
        else:
            future = self._start_pool().submit(self._score, flight.problem, answer)
            self._scoring[future] = (flight, answer)

    def refuse(self, id_: str, reason: str) -> None:
        """Record that the engine cannot answer this request."""
        self._write(self._flights.pop(id_), Answer(id_), _failed(reason))

    def collect(self, timeout_s: float = 0.0) -> None:
        """Write the samples that have been scored meanwhile; waits while too many have not."""
        self._gather(timeout_s)
        while len(self._scoring) > _MOST_UNSCORED:
            self._gather(None)

    def finish(self) -> BenchmarkResult:
        """Compute the result from all samples and replace their log lines by the store."""
        samples = self._log.read()
        result = summarise(
            samples,
            label=self.label,
            benchmark=self._task.order.benchmark,
            metrics=self._benchmark.metrics,
            group_kinds=self._benchmark.group_kinds,
            extras=self._benchmark.finish(samples),
            seconds=self._spent(),
            remarks=self._benchmark.remarks(samples) if isinstance(self._benchmark, HasRemarks) else {},
        )
        self._log.finish(samples, result)
        self._reporter.settle(self.label, {score.metric: score.value for score in result.scores})
        return result

    def describe(self) -> dict[str, Any]:
        """Describe the benchmark for the manifest."""
        files = self._task.files
        return {
            "order": self._task.order.model_dump(mode="json"),
            "revision": files.revision if files else None,
            "data_sha256": files.sha256 if files else None,
            "problems": len(self.problems),
            "prompts_sha256": self.prompts_sha256,
            "chat_template": self._renderer.has_chat,
            **self._benchmark.manifest(),
        }

    def leave(self) -> None:
        """Keep what is being scored, within a time, and close; the next attempt goes on from there."""
        deadline = time.monotonic() + STOP_GRACE_S
        for future in list(self._scoring):
            if future.cancel():  # not begun: it is generated again
                del self._scoring[future]
        while self._scoring and time.monotonic() < deadline:
            self._gather(deadline - time.monotonic())
        self._log.close(self._spent())

    def close(self) -> None:
        """End what scores."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._benchmark.close()

    def _gather(self, timeout_s: float | None) -> None:
        if not self._scoring:
            return
        done, _ = wait(self._scoring, timeout_s, return_when=FIRST_COMPLETED)
        for future in done:
            flight, answer = self._scoring.pop(future)
            self._write(flight, answer, future.result())

    def _places(self) -> Iterator[tuple[int, int, Problem]]:
        for position, problem in enumerate(self.problems):
            for number in range(self._benchmark.samples_per_problem):
                yield position, number, problem

    def _hash_prompts(self) -> str:
        digest = hashlib.sha256()
        try:
            for problem in self.problems:
                digest.update(self._renderer.write(problem).encode() + b"\0")
        except TemplateError as error:
            raise BenchmarkUnusable(
                f"{self.label}: the model's chat template rejected the prompts ({error}); "
                "set chat: never for this benchmark"
            ) from error
        return digest.hexdigest()

    def _recall(self, sample: Sample) -> None:
        if sample.position < len(self.problems) and sample.number < self._benchmark.samples_per_problem:
            self._done.add((sample.position, sample.number))
            self._tally.add(sample)
            self._reporter.done += 1

    def _ask(self, problem: Problem, number: int) -> tuple[Prompt, Generation | Likelihood]:
        if self._benchmark.needs == "loglikelihood":
            return self._renderer.render_choices(problem)
        prompt = self._renderer.render(problem)
        decoding = self._task.order.decoding
        generation = Generation(
            prompt.tokens,
            max_tokens=decoding.max_tokens or self._benchmark.default_max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            # A chat model ends its turn by itself.
            stop=() if self._renderer.has_chat else tuple(self._benchmark.stop),
            seed=choose_seed(self._seed, problem.key, number),
        )
        return prompt, generation

    def _start_pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            threads = _JUDGED_AT_A_TIME if self._task.judge else max(2, len(os.sched_getaffinity(0)))
            self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"score-{self.label}")
        return self._pool

    def _score(self, problem: Problem, answer: Answer) -> Scored:
        is_truncated = answer.finish_reason == "length"
        try:
            scored = self._benchmark.score(problem, answer.text, is_truncated=is_truncated)
        except Exception as error:  # the edge of a scorer that anybody may have written
            logger.exception("%s could not score problem %s", self.label, problem.key)
            return _failed(f"{type(error).__name__}: {error}")
        if is_truncated and scored.verdict in (Verdict.WRONG, Verdict.UNANSWERED):
            return replace(scored, verdict=Verdict.TRUNCATED)
        return scored

    def _score_choices(self, problem: Problem, values: list[float]) -> Scored:
        try:
            return self._benchmark.score_choices(problem, values)
        except Exception as error:  # as above
            logger.exception("%s could not score problem %s", self.label, problem.key)
            return _failed(f"{type(error).__name__}: {error}")

    def _write(self, flight: Flight, answer: Answer, scored: Scored) -> None:
        sample = Sample(
            position=flight.position,
            key=flight.problem.key,
            number=flight.number,
            groups=flight.problem.groups,
            prompt=flight.prompt,
            output=answer.text,
            extracted=scored.extracted,
            gold=flight.problem.gold,
            verdict=scored.verdict,
            score=scored.score,
            parts=scored.parts,
            notes=scored.notes,
            finish_reason=answer.finish_reason,
            prompt_tokens=flight.prompt_tokens,
            output_tokens=answer.output_tokens,
            seconds=round(answer.seconds, 4),
            error=scored.error,
        )
        self._log.append(sample)
        self._done.add((flight.position, flight.number))
        self._tally.add(sample)
        self._reporter.note(self.label, self._tally.means())

    def _spent(self) -> float:
        """Return the seconds of all attempts."""
        now = time.monotonic()
        return round(self._log.state.seconds + (now - self._started if self._started else 0.0), 3)


def _failed(reason: str) -> Scored:
    return Scored(Verdict.FAILED, 0.0, error=reason)
