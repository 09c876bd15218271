"""GSM8K's two metrics against lm-evaluation-harness's own filters and metric, output by output."""

import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from trellis_testing.agreement import Judged, compare
from trellis_testing.benchmark_sets import GSM8K, needs_sets, order_benchmark, score
from trellis_testing.reference_tasks import load_reference, reference_scores
from trellis_train.evaluate.numbers import read_number

pytestmark = [needs_sets(GSM8K), pytest.mark.slow]
FILTERS = {"strict": "strict-match", "flexible": "flexible-extract"}
WORK = "First there are 7, then 12 more, which makes 19 in 3 groups.\n"

#: How an answer may be written, of the number and one that is not it.
STYLES: dict[str, Callable[[int, int], str]] = {
    "marked": lambda n, _: f"{WORK}#### {n}",
    "marked, with commas": lambda n, _: f"{WORK}#### {n:,}",
    "marked, with a unit": lambda n, _: f"{WORK}#### {n} eggs",
    "marked, with a full stop": lambda n, _: f"{WORK}#### {n}.",
    "marked, as percent": lambda n, _: f"{WORK}#### {n}%",
    "marked, with currency": lambda n, _: f"{WORK}#### ${n:,}",
    "marked, with cents": lambda n, _: f"{WORK}#### {n}.00",
    "marked without a blank": lambda n, _: f"{WORK}####{n}",
    "marked, as a fraction": lambda n, _: f"{WORK}#### {2 * n}/2",
    "marked, in bold": lambda n, _: f"{WORK}#### **{n}**",
    "marked, as an equation": lambda n, _: f"{WORK}#### 1 + {n - 1} = {n}",
    "marked, negative": lambda n, _: f"{WORK}#### -{n}",
    "marked, and a half": lambda n, _: f"{WORK}#### {n}.5",
    "marked, more follows": lambda n, _: f"{WORK}#### {n}\nThat took 3 steps.",
    "marked twice": lambda n, other: f"{WORK}#### {other}\nNo, I forgot one.\n#### {n}",
    "marked after thinking": lambda n, other: f"<think>Is it #### {other}?</think>\n{WORK}#### {n}",
    "boxed": lambda n, _: f"{WORK}So it is $\\boxed{{{n}}}$.",
    "boxed with currency": lambda n, _: f"{WORK}So it is \\boxed{{\\${n:,}}}",
    "told": lambda n, _: f"{WORK}The answer is {n}.",
    "told with currency": lambda n, _: f"{WORK}She pays ${n:,} in all.",
    "told with cents": lambda n, _: f"{WORK}She pays ${n}.00 in all.",
    "told in bold": lambda n, _: f"{WORK}**Answer:** **{n}** eggs",
    "told in a formula": lambda n, _: f"{WORK}This gives $x = {n}$",
    "told, more follows": lambda n, _: f"{WORK}The answer is {n}. I checked it 2 times.",
    "told as a difference": lambda n, _: f"{WORK}What is left is all-{n}",
    "told as a fraction": lambda n, _: f"{WORK}That is {2 * n}/2",
    "told with a list": lambda n, other: f"{WORK}It is between {other} and {n}",
    "nothing said": lambda n, _: "I do not know.",
    "empty": lambda n, _: "",
}
ANOTHER_WRITING = "the same number written otherwise; lm-evaluation-harness compares texts"
ONLY_AFTER_MARK = "lm-evaluation-harness wants a digit right behind '#### '"
LAST_COUNTS = "the last mark counts here, the first there"
#: (style, metric): why the two differ.
EXPLAINED = {
    ("marked, with currency", "strict"): ONLY_AFTER_MARK,
    ("marked without a blank", "strict"): ONLY_AFTER_MARK,
    ("marked, in bold", "strict"): ONLY_AFTER_MARK,
    ("marked, with cents", "strict"): ANOTHER_WRITING,
    ("marked, with cents", "flexible"): ANOTHER_WRITING,
    ("told with cents", "flexible"): ANOTHER_WRITING,
    ("marked, as a fraction", "strict"): "the fraction's value counts here, its first number there",
    ("marked, as a fraction", "flexible"): "the fraction's value counts here, its last number there",
    ("told as a fraction", "flexible"): "the fraction's value counts here, its last number there",
    ("marked, as an equation", "strict"): "what the equation gives counts here, its first number there",
    ("marked twice", "strict"): LAST_COUNTS,
    ("marked after thinking", "strict"): "thinking is no answer here; there its first mark counts",
    ("marked, more follows", "flexible"): "what is marked is the answer here, whatever number follows",
    ("told, more follows", "flexible"): "what 'the answer is' is the answer here, whatever number follows",
    ("told as a difference", "flexible"): "a minus sign behind a word takes away, it is no sign of a number",
    ("boxed", "strict"): "a box is a mark here",
    ("boxed", "flexible"): "to lm-evaluation-harness the '$.' behind it is the last number",
    ("boxed with currency", "strict"): "a box is a mark here",
}


def test_both_metrics_agree_with_the_reference_but_for_what_is_explained(tmp_path, capsys):
    benchmark = order_benchmark({"benchmark": "gsm8k"}, GSM8K)
    problems, draw = benchmark.problems(), random.Random(5)
    reference = load_reference("gsm8k/gsm8k.yaml", GSM8K, tmp_path)
    docs = list(reference.test_docs())
    outputs, styles = [], []
    for number, problem in enumerate(problems):
        style = list(STYLES)[number % len(STYLES)]
        right, other = read_number(problem.gold), draw.randint(2, 999)
        assert isinstance(right, Fraction)
        # A third is wrong.
        value = int(right) if number % 3 else int(right) + draw.choice([-2, 1, 10])
        outputs.append(STYLES[style](value, other))
        styles.append(style)

    theirs = {metric: reference_scores(reference, name, docs, outputs) for metric, name in FILTERS.items()}
    ours = [score(benchmark, problem, output) for problem, output in zip(problems, outputs, strict=True)]

    judged = [
        Judged(
            styles[i], metric, outputs[i], problems[i].gold, bool(ours[i].parts[metric]), theirs[metric][i]
        )
        for i in range(len(problems))
        for metric in FILTERS
    ]
    table = compare(judged, EXPLAINED)
    with capsys.disabled():
        print(f"\nGSM8K against lm-evaluation-harness: {table}")
    assert len(outputs) >= 1000


@pytest.mark.parametrize("shots", [0, 3])
def test_plain_prompts_are_those_of_the_reference(tmp_path, shots):
    benchmark = order_benchmark({"benchmark": "gsm8k", "shots": shots}, GSM8K)
    reference = load_reference("gsm8k/gsm8k.yaml", GSM8K, tmp_path, fewshot_config={"sampler": "first_n"})

    docs = list(reference.test_docs())[:20]

    for problem, doc in zip(benchmark.problems()[:20], docs, strict=True):
        assert benchmark.prompt(problem, chat=False) == reference.fewshot_context(doc, shots)
