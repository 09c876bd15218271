"""HumanEval (Chen et al. 2021): the share of functions that pass their tests."""

import ast
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from trellis_contracts.evaluation import BenchmarkTask, HumanEvalOrder, Sample, Score, Verdict
from trellis_evaluation.statistics import pass_at_k_score

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Message, Needs, Problem, Scored
from trellis_train.evaluate.humaneval.code import STOPS, find_program
from trellis_train.evaluate.loading import Row, load_part
from trellis_train.sandbox.errors import SandboxError, SandboxUnavailable
from trellis_train.sandbox.function_tests import FunctionTest, FunctionTester
from trellis_train.sandbox.limits import MIB

HEADLINE = "pass@1"
INSTRUCTION = (
    "Complete this Python function. Answer with the whole function, and with the imports that it needs, in "
    "one fenced code block.\n\n```python\n{prompt}\n```"
)
#: What programs may import beside the standard library: what the published harness itself brings. Other
#: packages could hold the benchmark's own files.
PACKAGES = ("numpy", "numpy.libs")


class HumanEval:
    """The benchmark as it was ordered; made only where code can be isolated."""

    metrics: tuple[str, ...] = (HEADLINE,)
    group_kinds: tuple[str, ...] = ()
    needs: Needs = "generate"
    default_max_tokens = 1024
    stop = list(STOPS)  # noqa: RUF012 - read by the run, as of every benchmark

    def __init__(self, task: BenchmarkTask, _seed: int) -> None:
        order = task.order
        if not isinstance(order, HumanEvalOrder):
            raise TypeError(f"{order.benchmark} is another benchmark")
        _check(order)
        self.label = task.label
        self.samples_per_problem = order.samples
        self._order, self._files = order, task.files
        try:
            self._tester = FunctionTester(
                timeout_s=order.timeout_s, memory_bytes=order.memory_mb * MIB, packages=PACKAGES
            )
        except SandboxUnavailable as error:
            raise BenchmarkUnusable(f"HumanEval runs code written by the model. {error}") from error

    def problems(self) -> Sequence[Problem]:
        """Return the functions to complete, in file order."""
        problems = [_read(row) for row in load_part(self._files, "test")]
        keys = {problem.key for problem in problems}
        if len(keys) < len(problems):
            raise BenchmarkUnusable("two problems have the same task_id")
        return problems

    def prompt(self, problem: Problem, chat: bool) -> list[Message] | str:
        """Return the beginning of the function unchanged, or for chat a request to complete it."""
        begun: str = problem.row["prompt"]
        if not chat:
            return begun
        system = [{"role": "system", "content": self._order.system}] if self._order.system else []
        return [*system, {"role": "user", "content": INSTRUCTION.format(prompt=begun.rstrip())}]

    def score(self, problem: Problem, output: str, *, is_truncated: bool) -> Scored:  # noqa: ARG002
        """Score 1 where the program passes its tests; one that is cut short is tried like any other."""
        row = problem.row
        found = find_program(output, row["prompt"], row["entry_point"])
        if found is None:
            return Scored(Verdict.UNANSWERED, 0.0, parts={HEADLINE: 0.0})
        test = FunctionTest(function=row["entry_point"], before=row["prompt"], test=row["test"])
        try:
            outcome = self._tester.run(found.program, test)
        except SandboxError as error:
            return Scored(Verdict.FAILED, 0.0, found.code, {HEADLINE: 0.0}, error=str(error))
        notes = {"tests": outcome.problem or "passed"}
        if outcome.printed:
            notes["printed"] = outcome.printed
        verdict, score = (Verdict.CORRECT, 1.0) if outcome.has_passed else (Verdict.WRONG, 0.0)
        return Scored(verdict, score, found.code, {HEADLINE: score}, notes)

    def score_choices(self, problem: Problem, log_likelihoods: list[float]) -> Scored:
        """Raise ``NotImplementedError``: programs are generated."""
        raise NotImplementedError("HumanEval has no choices")

    def finish(self, samples: Sequence[Sample]) -> list[Score]:
        """Compute pass@k for each k that was requested; pass@1 is the mean."""
        counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for sample in samples:
            counts[sample.position][0] += 1
            counts[sample.position][1] += sample.verdict is Verdict.CORRECT
        pairs = [(n, correct) for n, correct in counts.values()]
        return [pass_at_k_score(pairs, k) for k in sorted(set(self._order.k)) if k > 1]

    def manifest(self) -> dict[str, Any]:
        """Describe how programs were requested, found and executed."""
        return {
            "instruction": INSTRUCTION,
            "samples": self._order.samples,
            "pass@k": "unbiased estimator of Chen et al. (2021)",
            "execution": "bubblewrap; tests in a process apart from the program's, plain data between them",
            "processor_time_s": self._order.timeout_s,
            "memory_mb": self._order.memory_mb,
            "packages": ["numpy"],
        }

    def close(self) -> None:
        """End the processes of the tests."""
        self._tester.close()


def _check(order: HumanEvalOrder) -> None:
    if order.shots:
        raise BenchmarkUnusable("HumanEval has no few-shot examples: shots must be 0")
    if order.samples > 1 and order.decoding.temperature == 0:
        raise BenchmarkUnusable(
            f"all {order.samples} samples per problem are identical at temperature 0: set "
            "decoding.temperature above 0 (typically 0.2 to 0.8)"
        )


def _read(row: Row) -> Problem:
    """Read a problem; ``BenchmarkUnusable`` if the prompt does not define its function."""
    fields = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
    values = {name: row.text(name) for name in fields}
    try:
        begun = {each.name for each in ast.parse(values["prompt"]).body if isinstance(each, ast.FunctionDef)}
    except (SyntaxError, ValueError) as error:
        raise BenchmarkUnusable(f"'prompt' in {row.place} is not valid Python: {error}") from error
    if values["entry_point"] not in begun:
        raise BenchmarkUnusable(f"'prompt' in {row.place} does not define {values['entry_point']}")
    if not values["prompt"].endswith("\n"):
        values["prompt"] += "\n"
    return Problem(
        key=values["task_id"], gold=values["canonical_solution"], row=values, text=values["prompt"]
    )
