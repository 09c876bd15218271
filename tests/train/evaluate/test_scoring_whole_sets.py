"""On every whole test set the reference answers score 100 %, and shuffled ones near chance."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from trellis_contracts.evaluation import Sample, Verdict
from trellis_testing.benchmark_sets import GSM8K, MATH, MATH500, MMLU, needs_sets, order_benchmark, score
from trellis_train.evaluate.benchmark import Benchmark, Problem, Scored


def shuffled(items: Sequence[str]) -> list[str]:
    order = list(items)
    random.Random(11).shuffle(order)
    return order


def score_all(benchmark: Benchmark, problems: Sequence[Problem], outputs: Sequence[str]) -> list[Scored]:
    """As a run does it: from several threads."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda pair: score(benchmark, *pair), zip(problems, outputs, strict=True)))


def mean(scored: Sequence[Scored]) -> float:
    return sum(each.score for each in scored) / len(scored)


@needs_sets(GSM8K)
def test_gsm8k():
    benchmark = order_benchmark({"benchmark": "gsm8k"}, GSM8K)
    problems = benchmark.problems()
    references = [problem.row["answer"] for problem in problems]

    right = score_all(benchmark, problems, references)
    wrong = score_all(benchmark, problems, shuffled(references))

    assert len(problems) == 1319
    assert [each.verdict for each in right] == [Verdict.CORRECT] * 1319
    assert all(each.parts == {"strict": 1.0, "flexible": 1.0} for each in right)
    assert mean(wrong) < 0.03
    assert sum(each.parts["flexible"] for each in wrong) / 1319 < 0.03


@needs_sets(MATH)
@pytest.mark.timeout(600)
@pytest.mark.slow
def test_math():
    benchmark = order_benchmark({"benchmark": "math"}, MATH)
    problems = benchmark.problems()
    references = [problem.row["solution"] for problem in problems]
    # Only the answer, in other words: what a model that knows all would write.
    told = [f"The final answer is ${problem.gold}$. I hope it is correct." for problem in problems]

    right = score_all(benchmark, problems, references)
    also_right = score_all(benchmark, problems, told)
    wrong = score_all(benchmark, problems, shuffled(references))
    benchmark.close()

    assert len(problems) == 5000
    assert [p.gold for p, each in zip(problems, right, strict=True) if each.verdict != Verdict.CORRECT] == []
    assert [
        p.gold for p, each in zip(problems, also_right, strict=True) if each.verdict != Verdict.CORRECT
    ] == []
    assert mean(wrong) < 0.03
    assert not any(each.notes for each in wrong), "no comparison ran into its limit"


@needs_sets(MATH500)
@pytest.mark.slow
def test_math500():
    benchmark = order_benchmark({"benchmark": "math500"}, MATH500)
    problems = benchmark.problems()
    references = [problem.row["solution"] for problem in problems]

    right = score_all(benchmark, problems, references)
    wrong = score_all(benchmark, problems, shuffled(references))
    benchmark.close()

    assert len({problem.key for problem in problems}) == 500
    assert {problem.groups["level"] for problem in problems} == {f"Level {n}" for n in range(1, 6)}
    assert [each.verdict for each in right] == [Verdict.CORRECT] * 500
    assert mean(wrong) < 0.03


@needs_sets(MMLU)
def test_mmlu_by_letter_and_by_likelihood():
    benchmark = order_benchmark({"benchmark": "mmlu"}, MMLU)
    problems = benchmark.problems()
    letters = [problem.gold for problem in problems]

    right = score_all(benchmark, problems, [f"The answer is ({letter})." for letter in letters])
    wrong = score_all(benchmark, problems, shuffled(letters))
    likely = [benchmark.score_choices(p, [float(c == f" {p.gold}") for c in p.choices]) for p in problems]

    assert len(problems) == 3018
    assert {problem.groups["category"] for problem in problems} == {"stem"}
    assert mean(right) == mean(likely) == 1.0
    # A quarter by chance; six standard errors of 3,018 draws.
    assert abs(mean(wrong) - 0.25) < 6 * (0.25 * 0.75 / 3018) ** 0.5


@needs_sets(MMLU)
def test_mmlu_macro_lets_each_subject_count_alike():
    benchmark = order_benchmark({"benchmark": "mmlu", "subjects": ["astronomy", "Machine Learning"]}, MMLU)
    problems = benchmark.problems()

    samples = [
        Sample(
            position=number, key=problem.key, groups=problem.groups, prompt="", output="", gold=problem.gold,
            verdict=Verdict.CORRECT, score=float(problem.groups["subject"] == "astronomy"),
        )
        for number, problem in enumerate(problems)
    ]  # fmt: skip
    [macro] = benchmark.finish(samples)

    assert {problem.groups["subject"] for problem in problems} == {"astronomy", "machine_learning"}
    assert (macro.metric, macro.value, macro.n) == ("macro", 0.5, len(problems))
