"""What a benchmark is to the run that measures a model on it: problems, prompts, scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, Protocol, runtime_checkable

from trellis_contracts.evaluation import BenchmarkTask, Sample, Score, Verdict

Message = dict[str, str]
Needs = Literal["generate", "loglikelihood"]


class BenchmarkUnusable(Exception):
    """It cannot be run as it was ordered: the message says which file, row or option is wrong."""


@dataclass(frozen=True)
class Problem:
    """One question of a benchmark."""

    #: The same in every evaluation of the same revision: by it two evaluations are compared.
    key: str
    #: The reference answer, as it is shown.
    gold: str
    row: dict[str, Any]
    #: By kind of group: {"level": "Level 3", "type": "Algebra"}.
    groups: dict[str, str] = field(default_factory=dict)
    #: The question by itself: as messages where the row is a conversation, else as text.
    messages: list[Message] | None = None
    text: str | None = None
    #: What may follow the prompt, each as it is written there; only of benchmarks that need log-likelihoods.
    choices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scored:
    """What one output is worth.

    The verdict is CORRECT, WRONG, UNANSWERED or FAILED; that an output was cut short is the run's to add.
    """

    verdict: Verdict
    #: Under the headline metric, 0 to 1.
    score: float
    extracted: str | None = None
    #: Under each metric, and what else was measured.
    parts: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    #: Why it could not be scored; only with FAILED.
    error: str | None = None


class Benchmark(Protocol):
    """A benchmark as it was ordered."""

    label: str
    #: The one that stands for the benchmark comes first. Each is a key of ``Scored.parts`` of every sample.
    metrics: tuple[str, ...]
    #: Kinds of ``Problem.groups`` by which scores are broken down.
    group_kinds: tuple[str, ...]
    needs: Needs
    samples_per_problem: int
    #: Of one answer, where the order names no number.
    default_max_tokens: int
    #: Texts that end an answer to a plain prompt; a chat model ends by itself.
    stop: list[str]

    def problems(self) -> Sequence[Problem]:
        """Return all problems in the order of the files; ``BenchmarkUnusable`` where they cannot be read."""

    def prompt(self, problem: Problem, chat: bool) -> list[Message] | str:
        """Build examples and question: plain text, or messages for the chat template (and system message)."""

    def score(self, problem: Problem, output: str, *, is_truncated: bool) -> Scored:
        """Score a generation. Must be thread-safe; may take seconds, but must end."""

    def score_choices(self, problem: Problem, log_likelihoods: list[float]) -> Scored:
        """Score the log-likelihoods (natural, summed over tokens) of ``problem.choices``."""

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Compute scores that are not means over samples (pass@k, macro averages)."""

    def manifest(self) -> dict[str, Any]:
        """Return how problems, examples and answers were chosen, as JSON."""

    def close(self) -> None:
        """End what was started."""


@runtime_checkable
class HasRemarks(Protocol):
    """A benchmark, or its scorer, with more to say of a result than its scores."""

    def remarks(self, samples: Sequence[Sample]) -> dict[str, float | str]:
        """Return ``BenchmarkResult.remarks``: what a judge cost, how far it agrees with people."""


#: Where each benchmark lives: a class that is made with (task, seed), imported when it is ordered.
_BENCHMARKS = {
    "gsm8k": ("trellis_train.evaluate.gsm8k", "Gsm8k"),
    "math": ("trellis_train.evaluate.competition_math", "CompetitionMath"),
    "math500": ("trellis_train.evaluate.competition_math", "CompetitionMath"),
    "mmlu": ("trellis_train.evaluate.mmlu", "Mmlu"),
    "humaneval": ("trellis_train.evaluate.humaneval.benchmark", "HumanEval"),
    "custom": ("trellis_train.evaluate.custom.benchmark", "Custom"),
}


def open_benchmark(task: BenchmarkTask, seed: int) -> Benchmark:
    """Open the benchmark that the task requests; ``seed`` is the evaluation's.

    Tasks of lm-evaluation-harness are no benchmarks in this sense: they raise ``ValueError``.
    """
    name = task.order.benchmark
    if name not in _BENCHMARKS:
        raise ValueError(f"{name} is run by its own library")
    module, class_name = _BENCHMARKS[name]
    benchmark: Benchmark = getattr(import_module(module), class_name)(task, seed)
    return benchmark
