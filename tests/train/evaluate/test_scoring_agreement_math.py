"""MATH's metric against math-verify reading the whole output by itself, output by output."""

import random
from collections.abc import Callable

import pytest
from math_verify import parse, verify
from trellis_testing.agreement import Judged, compare
from trellis_testing.benchmark_sets import MATH, needs_sets, order_benchmark, score

pytestmark = [needs_sets(MATH), pytest.mark.slow, pytest.mark.timeout(600)]
OUTPUTS = 1050
WORK = "We add both sides and find what was asked for.\n"

#: How an answer may be written, of the expression and one that is not it.
STYLES: dict[str, Callable[[str, str], str]] = {
    "boxed": lambda gold, _: f"{WORK}Therefore $\\boxed{{{gold}}}$.",
    "boxed in a display": lambda gold, _: f"{WORK}\\[\\boxed{{ {gold} }}\\]",
    "boxed, set otherwise": lambda gold, _: (
        f"{WORK}$\\boxed{{{gold.replace(chr(92) + 'frac', chr(92) + 'dfrac').replace(',', ', ')}}}$"
    ),
    "boxed twice": lambda gold, other: f"Is it $\\boxed{{{other}}}$? No. {WORK}It is $\\boxed{{{gold}}}$.",
    "boxed as an equation": lambda gold, _: f"{WORK}$\\boxed{{w = {gold}}}$",
    "boxed with a unit": lambda gold, _: f"{WORK}$\\boxed{{{gold}\\text{{ cm}}}}$",
    "boxed as a percentage": lambda gold, _: f"{WORK}$\\boxed{{{gold}\\%}}$",
    "boxed and a half": lambda gold, _: f"{WORK}$\\boxed{{{gold} + \\frac{{1}}{{2}}}}$",
    "the final answer": lambda gold, _: f"{WORK}The final answer is ${gold}$. I hope it is correct.",
    "the answer": lambda gold, _: f"{WORK}The answer is ${gold}$.",
    "a formula alone": lambda gold, _: f"{WORK}So we have ${gold}$.",
    "boxed after thinking": lambda gold, other: (
        f"<think>$\\boxed{{{other}}}$ is wrong.</think>{WORK}It is $\\boxed{{{gold}}}$."
    ),
    "boxed while thinking": lambda gold, _: f"<think>Perhaps $\\boxed{{{gold}}}$. Let me check",
    "nothing": lambda gold, _: "I cannot solve this.",
}
EXPLAINED = {
    ("a formula alone", "accuracy"): "a formula that nothing marks as the answer is none here",
    ("boxed while thinking", "accuracy"): "thinking is no answer here",
    ("boxed as an equation", "accuracy"): "14,400 behind an equals sign is two numbers to math-verify",
    ("boxed as a percentage", "accuracy"): "a percentage is a hundredth here also of a number with a base",
}


def test_scores_agree_with_math_verify_but_for_what_is_explained(capsys):
    benchmark = order_benchmark({"benchmark": "math"}, MATH)
    draw = random.Random(8)
    problems = draw.sample(list(benchmark.problems()), OUTPUTS)
    judged = []
    for number, problem in enumerate(problems):
        style = list(STYLES)[number % len(STYLES)]
        other = draw.choice(problems).gold
        output = STYLES[style](problem.gold if number % 3 else other, other)
        theirs = verify(parse(f"${problem.gold}$"), parse(output))
        ours = bool(score(benchmark, problem, output).score)
        judged.append(Judged(style, "accuracy", output, problem.gold, ours, theirs))
    benchmark.close()

    with capsys.disabled():
        print(f"\nMATH against math-verify: {compare(judged, EXPLAINED)}")
