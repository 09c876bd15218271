"""MMLU's two modes against lm-evaluation-harness's own filters and metrics, question by question."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from trellis_testing.agreement import Judged, compare
from trellis_testing.benchmark_sets import MMLU, needs_sets, order_benchmark, score
from trellis_testing.reference_tasks import load_reference, reference_scores

pytestmark = [needs_sets(MMLU), pytest.mark.slow]
#: Its examples come from a part of the hub's repository.
NO_EXAMPLES = {"fewshot_split": None, "fewshot_config": None}

#: How a letter may be written, of the letter, the choice's words, and another letter.
STYLES: dict[str, Callable[[str, str, str], str]] = {
    "letter": lambda letter, words, other: f" {letter}",
    "small letter": lambda letter, words, other: letter.lower(),
    "letter and full stop": lambda letter, words, other: f"{letter}.",
    "letter in brackets": lambda letter, words, other: f"({letter})",
    "letter in bold": lambda letter, words, other: f"**{letter}**",
    "letter, then another question": lambda letter, words, other: f" {letter}\n\nWhat is next?\nA. 1",
    "nothing": lambda letter, words, other: "",
    "no choice": lambda letter, words, other: "None of them",
    "no such letter": lambda letter, words, other: "Z",
    "an article": lambda letter, words, other: "A cell has no walls, and I cannot say",
    "letter and words": lambda letter, words, other: f"{letter}. {words}",
    "words": lambda letter, words, other: words,
    "a sentence": lambda letter, words, other: f"The correct answer is ({letter}).",
    "a sentence after others": lambda letter, words, other: f"({other}) is wrong.\nThe answer is {letter}.",
    "boxed": lambda letter, words, other: f"So $\\boxed{{\\text{{{letter}}}}}$",
    "on the next line": lambda letter, words, other: f"\n{letter}",
    "after thinking": lambda letter, words, other: f"<think>({other})?</think>{letter}",
}
FIRST_LINE = "lm-evaluation-harness wants the letter alone on the first line"
EXPLAINED = {
    (style, "letter"): FIRST_LINE
    for style in (
        *("letter and words", "words", "a sentence", "a sentence after others", "boxed"),
        *("on the next line", "after thinking"),
    )
}


def test_likelihoods_choose_as_the_reference_does_and_ties_too(tmp_path):
    benchmark = order_benchmark({"benchmark": "mmlu", "shots": 0}, MMLU)
    reference = load_reference("mmlu/default/_default_template_yaml", MMLU, tmp_path, **NO_EXAMPLES)
    draw = np.random.default_rng(3)
    docs = list(reference.test_docs())
    problems = benchmark.problems()
    drawn = draw.normal(-3, 1, (len(docs), 4)).round(1).tolist()

    theirs = [
        reference.process_results(doc, [(value, False) for value in row])
        for doc, row in zip(docs, drawn, strict=True)
    ]
    ours = [benchmark.score_choices(problem, row) for problem, row in zip(problems, drawn, strict=True)]

    assert sum(len(set(row)) < 4 for row in drawn) > 100, "there are ties among them"
    assert [each.parts["accuracy"] for each in ours] == [each["acc"] for each in theirs]
    request = reference.construct_requests(docs[0], "")
    assert problems[0].choices == [each.args[1] for each in request]


def test_letters_agree_with_the_reference_but_for_what_is_explained(tmp_path, capsys):
    benchmark = order_benchmark({"benchmark": "mmlu", "mode": "generate"}, MMLU)
    reference = load_reference("mmlu/generative/_default_template_yaml", MMLU, tmp_path, **NO_EXAMPLES)
    draw = random.Random(4)
    docs, problems = list(reference.test_docs()), benchmark.problems()
    outputs, styles = [], []
    for number, problem in enumerate(problems):
        style = list(STYLES)[number % len(STYLES)]
        letter = problem.gold if number % 3 else draw.choice("ABCD")
        other = draw.choice([each for each in "ABCD" if each != letter])
        outputs.append(STYLES[style](letter, problem.row["choices"]["ABCD".index(letter)], other))
        styles.append(style)

    theirs = reference_scores(reference, "get_response", docs, outputs)

    ours = [score(benchmark, problem, output) for problem, output in zip(problems, outputs, strict=True)]
    judged = [
        Judged(styles[i], "letter", outputs[i], problems[i].gold, bool(ours[i].score), theirs[i])
        for i in range(len(problems))
    ]
    with capsys.disabled():
        print(f"\nMMLU against lm-evaluation-harness: {compare(judged, EXPLAINED)}")


@pytest.mark.parametrize("shots", [0, 5])
def test_plain_prompts_are_those_of_the_reference(tmp_path, shots):
    """With a part ``dev``: the same rows stand in for it on both sides."""
    parts = {**MMLU, "dev": MMLU["test"]}
    order = {"benchmark": "mmlu", "shots": shots, "subjects": ["astronomy"]}
    problems = order_benchmark(order, parts).problems()[:10]
    benchmark = order_benchmark(order, parts)
    reference = load_reference(
        "mmlu/default/_default_template_yaml",
        parts,
        tmp_path,
        process_docs=lambda rows: rows.filter(lambda row: row["type"] == "astronomy"),
        description="The following are multiple choice questions (with answers) about astronomy.\n\n",
    )

    docs = list(reference.test_docs())[:10]

    for problem, doc in zip(problems, docs, strict=True):
        assert benchmark.prompt(problem, chat=False) == reference.fewshot_context(doc, shots)
