"""Graders as rewards: what the reward file computes, what a judge is asked, and what is refused by name."""

import math
import re
from typing import Any

import pytest
from pydantic import TypeAdapter
from trellis_api.core.settings import REPOSITORY_ROOT, Settings
from trellis_api.fine_tuning.errors import GraderUnsupported
from trellis_api.fine_tuning.graders import runtime
from trellis_api.fine_tuning.graders.mixture import Rewards, build_rewards
from trellis_api.fine_tuning.graders.schemas import Grader
from trellis_api.fine_tuning.requests import Method
from trellis_api.rewards.source_check import find_problem
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_recipes.rewards import check_mixture

CHECK = {
    "type": "string_check",
    "name": "right",
    "input": "{{sample.output_text}}",
    "reference": "{{ item.reference_answer }}",
    "operation": "eq",
}
SIMILAR = {**CHECK, "type": "text_similarity", "name": "alike", "evaluation_metric": "fuzzy_match"}
SIMILAR.pop("operation")
PYTHON = {
    "type": "python",
    "name": "short",
    "source": "def grade(sample, item):\n    return float(len(sample['output_text']) <= item['most'])\n",
}
JUDGE = {
    "type": "score_model",
    "name": "quality",
    "model": "strict",
    "input": [{"role": "user", "content": "Grade {{sample.output_text}} by {{item.reference_answer}} {x}."}],
    "range": [1, 5],
}


@pytest.fixture
def judged(settings: Settings) -> Settings:
    judge = JudgeEndpoint(base_url="http://judge.test/v1", model="m")
    return settings.model_copy(update={"judges": {"strict": judge}})


def build(grader: dict[str, Any], settings: Settings) -> Rewards:
    return build_rewards(TypeAdapter(Grader).validate_python(grader), settings)


def score(rewards: Rewards, response: str, **item: Any) -> Any:
    """What the reward file gives, run here as the sandbox runs it."""
    assert rewards.code is not None
    assert find_problem(rewards.code) is None
    names: dict[str, Any] = {}
    exec(compile(rewards.code, "reward.py", "exec"), names)
    row = {"item": __import__("json").dumps(item)}
    return names["score"]("?", response, "", row)


def multi(formula: str, *graders: dict[str, Any]) -> dict[str, Any]:
    by_name = {grader["name"]: grader for grader in graders}
    return {"type": "multi", "name": "all", "graders": by_name, "calculate_output": formula}


@pytest.mark.parametrize(
    ("operation", "response", "value"),
    [
        ("eq", "Four", 1.0),
        ("eq", "four", 0.0),
        ("ne", "four", 1.0),
        ("like", "It is Four.", 1.0),
        ("like", "it is four.", 0.0),
        ("ilike", "it is four.", 1.0),
    ],
)
def test_a_string_check_compares_as_its_operation_says(
    settings: Settings, operation: str, response: str, value: float
) -> None:
    rewards = build({**CHECK, "operation": operation}, settings)

    assert score(rewards, response, reference_answer="Four") == value
    assert rewards.judges == []


def test_fields_of_the_row_and_of_the_response_are_looked_up(settings: Settings) -> None:
    grader = {**CHECK, "input": "{{sample.output_json.sum}}/{{item.list[0].n}}", "reference": "3/7"}

    assert score(build(grader, settings), '{"sum": 3}', list=[{"n": 7}]) == 1.0


@pytest.mark.parametrize(
    ("metric", "given", "reference", "value"),
    [
        ("fuzzy_match", "kitten", "sitting", 2 * 4 / 13),
        ("rouge_1", "the cat sat", "the cat ran", 2 / 3),
        ("rouge_2", "the cat sat", "the cat ran", 1 / 2),
        ("rouge_l", "a b c d", "a c d e", 3 / 4),
        ("gleu", "the cat sat", "the cat ran", 3 / 6),
        ("bleu", "the cat sat on it", "the cat sat on it", 1.0),
        ("bleu", "dog", "the cat sat", 0.0),
    ],
)
def test_similarities_are_those_of_the_literature(
    metric: str, given: str, reference: str, value: float
) -> None:
    assert runtime.measure_similarity(metric, given, reference) == pytest.approx(value)


def test_bleu_is_that_of_sacrebleu() -> None:
    import sacrebleu

    for given, reference in (
        ("the cat sat on a mat", "the cat sat on the mat"),
        ("a b c d e", "a b x d e f g"),
    ):
        theirs = sacrebleu.sentence_bleu(given, [reference], smooth_method="exp", lowercase=True).score / 100
        assert runtime.measure_similarity("bleu", given, reference) == pytest.approx(theirs, abs=1e-6)


def test_several_graders_are_combined_by_the_formula_and_told_apart(settings: Settings) -> None:
    rewards = build(multi("0.75 * right + 0.25 * short", CHECK, PYTHON), settings)

    found = score(rewards, "four", reference_answer="four", most=2)

    assert found == {"score": 0.75, "right": 1.0, "short": 0.0}


def test_a_formula_may_have_functions_and_powers(settings: Settings) -> None:
    rewards = build(multi("max(right, alike) ^ 2 - min(1, abs(-0.5))", CHECK, SIMILAR), settings)

    ratio = 2 * 4 / 13
    assert score(rewards, "kitten", reference_answer="sitting")["score"] == pytest.approx(ratio**2 - 0.5)


def test_a_judge_is_asked_in_its_own_template_and_weighed_by_its_range(judged: Settings) -> None:
    rewards = build(multi("(2 * quality - right) / 4 + 1", JUDGE, CHECK), judged)

    (term,) = rewards.judges
    assert term["weight"] == pytest.approx(0.5 * 4)
    assert term["options"]["template"] == "user:\nGrade {response} by {answer} {{x}}."
    assert (term["options"]["lowest"], term["options"]["highest"]) == (1, 5)
    assert check_mixture(rewards.judges)[1] == []
    assert score(rewards, "four", reference_answer="four") == pytest.approx(-0.25)


def test_a_judge_alone_needs_no_file(judged: Settings) -> None:
    assert build(JUDGE, judged).code is None


@pytest.mark.parametrize(
    ("grader", "param", "said"),
    [
        ({**SIMILAR, "evaluation_metric": "cosine"}, "evaluation_metric", "'cosine' is not supported"),
        ({**SIMILAR, "evaluation_metric": "meteor"}, "evaluation_metric", "'meteor' is not supported"),
        ({**CHECK, "input": "{{ prompt }}"}, "input", "neither of item nor of sample"),
        ({**CHECK, "reference": "{{ item['a'] }}"}, "reference", "'{{'"),
        ({**PYTHON, "source": "def score(a, b): ..."}, "source", "no function grade"),
        ({**PYTHON, "source": "def grade(sample"}, "source", "line 1"),
        ({**PYTHON, "image_tag": "2025-05-08"}, "image_tag", "one sandbox"),
        ({**JUDGE, "model": "gpt-4o"}, "model", "no judge 'gpt-4o'; judges: strict"),
        ({**JUDGE, "range": [0, 0.5]}, "range", "whole numbers"),
        ({**JUDGE, "sampling_params": {"temperature": 1}}, "sampling_params.temperature", "cannot be chosen"),
        ({**JUDGE, "input": [{"role": "user", "content": "{{item.level}}"}]}, "input.0", "not supported"),
    ],
)
def test_what_a_grader_cannot_have_is_refused_by_name(
    judged: Settings, grader: dict[str, Any], param: str, said: str
) -> None:
    with pytest.raises(GraderUnsupported) as refused:
        build(grader, judged)

    assert refused.value.details == {"param": f"method.reinforcement.grader.{param}"}
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("right + wrong", "'wrong', which is no grader"),
        ("right.real", "Attribute"),
        ("__import__('os')", "may call"),
        ("[right]", "List"),
        ("right if right else 0", "IfExp"),
        ("right +", "cannot be read"),
        ("right // 2", "FloorDiv"),
        ("'a'", "no number"),
        ("right" + "+right" * 300, "too long"),
        ("right * 1e999", "not finite"),
        ("right * 1" + "0" * 400, "too large"),
        ("-" * 1500 + "right", "formula"),
    ],
)
def test_a_formula_is_arithmetic_and_nothing_else(settings: Settings, formula: str, said: str) -> None:
    with pytest.raises(GraderUnsupported, match="calculate_output") as refused:
        build(multi(formula, CHECK), settings)

    assert said in refused.value.message


def test_the_grader_of_the_page_is_one(settings: Settings) -> None:
    page = (REPOSITORY_ROOT / "docs" / "fine-tuning-api.md").read_text()
    names: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(block, names)

    method = Method.model_validate(names["method"])

    assert method.reinforcement is not None
    found = score(build_rewards(method.reinforcement.grader, settings), "4", reference_answer="4")
    assert found == {"score": 1.0, "right": 1.0, "short": 1.0}


def test_a_judge_in_a_product_is_refused(judged: Settings) -> None:
    with pytest.raises(GraderUnsupported, match="weighted sum"):
        build(multi("quality * right", JUDGE, CHECK), judged)
    with pytest.raises(GraderUnsupported, match="one 'score_model'"):
        build(multi("quality + other", JUDGE, {**JUDGE, "name": "other"}), judged)


def test_a_long_text_is_compared_within_bounds() -> None:
    import time

    began = time.monotonic()
    assert 0 < runtime.measure_similarity("fuzzy_match", "ab" * 10_000, "ba" * 10_000) <= 1
    assert time.monotonic() - began < 1
    assert math.isfinite(runtime.measure_similarity("rouge_5", "a " * 20_000, "a b " * 10_000))
