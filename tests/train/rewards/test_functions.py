"""What each reward returns, and for which responses."""

import doctest
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_recipes.data.reference_answers import find_boxed, find_reference_answer
from trellis_train.rewards import answers, functions, math_check, schema_check
from trellis_train.rewards.answers import as_number
from trellis_train.rewards.functions import (
    REWARDS,
    contains,
    exact,
    gsm8k,
    json_schema,
    length,
    math,
    regex,
    repetition,
    think_format,
)

GSM8K_TRUTH = "48/2 = <<48/2=24>>24\n48+24 = 72\n#### 72"


@pytest.mark.parametrize("module", [functions, answers], ids=lambda module: module.__name__)
def test_the_examples_in_the_documentation_hold(module) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("response", "score"),
    [("7", 1.0), (" 7\n", 1.0), ("<think>3+4</think>\n7", 1.0), ("7.", 0.0), ("seven", 0.0), ("", 0.0)],
)
def test_exact(response: str, score: float) -> None:
    assert exact(response, "7") == score


@pytest.mark.parametrize(
    ("response", "truth", "score"),
    [
        ("The answer is 7.", "7", 1.0),
        ("17", "7", 0.0),
        ("New  York it is", "New York", 1.0),
        ("a+b", "a+b", 1.0),
        ("anything", "", 0.0),
        ("<think>7</think> no idea", "7", 0.0),
    ],
)
def test_contains(response: str, truth: str, score: float) -> None:
    assert contains(response, truth) == score


@pytest.mark.parametrize(
    ("response", "score"), [("x=3, x=4", 1.0), ("x=4, x=3", 0.0), ("x=4.0", 1.0), ("4", 0.0)]
)
def test_regex_compares_the_last_match(response: str, score: float) -> None:
    assert regex(response, "4", pattern=r"x=([\d.]+)") == score


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("so 72\n#### 72", 1.0),
        ("#### $72.00", 1.0),
        ("####72 ", 1.0),
        ("#### 71\nno:\n#### 72", 1.0),
        ("#### 72\n#### 71", 0.0),
        ("72", 0.0),
        ("#### seventy-two", 0.0),
        ("", 0.0),
    ],
)
def test_gsm8k_wants_the_number_after_the_marks(response: str, score: float) -> None:
    assert gsm8k(response, GSM8K_TRUTH) == score


def test_gsm8k_reads_thousands() -> None:
    assert gsm8k("#### 1,250", "1250") == 1.0


@pytest.mark.parametrize(
    ("response", "truth", "score"),
    [
        (r"\boxed{\frac{1}{2}}", "0.5", 1.0),
        (r"\boxed{x^2+2x+1}", "(x+1)^2", 1.0),
        (r"\boxed{\{1,2\}}", r"\{2,1\}", 1.0),
        (r"first \boxed{3}, then \boxed{4}", "4", 1.0),
        ("#### 1,000", "1000", 1.0),
        (r"\boxed{2}", "3", 0.0),
        ("", "3", 0.0),
        (r"\boxed{}", "3", 0.0),
    ],
)
def test_math_compares_expressions(response: str, truth: str, score: float) -> None:
    assert math(response, truth) == score


def test_an_endless_expression_ends_and_the_next_is_still_compared(monkeypatch) -> None:
    monkeypatch.setattr(math_check, "TIMEOUT_S", 1.0)
    start = time.monotonic()

    assert not math_check.are_equal_expressions("(10^{10^9})!", "3")
    assert time.monotonic() - start < 120, "the limit counts processor time"
    assert math_check.are_equal_expressions(r"\frac{2}{4}", "0.5")


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("<think>a</think>b", 1.0),
        ("<think>\na\n</think>\nb", 1.0),
        ("<think></think>b", 0.0),
        ("<think>a</think>", 0.0),
        ("b<think>a</think>b", 0.0),
        ("<think>a</think><think>a</think>b", 0.0),
        ("b", 0.0),
    ],
)
def test_think_format(response: str, score: float) -> None:
    assert think_format(response, "") == score


@pytest.mark.parametrize(("characters", "penalty"), [(0, 0), (10, 0), (15, -0.5), (20, -1), (99, -1)])
def test_length_penalty(characters: int, penalty: float) -> None:
    assert length("x" * characters, "", free_length=10) == penalty


@settings(deadline=None)
@given(
    content=st.text().filter(lambda text: "\\boxed" not in text and text.count("{") == text.count("}") == 0)
)
def test_the_content_of_a_box_is_found(content: str) -> None:
    assert find_boxed(f"so \\boxed{{{content}}}.") == (content.strip() or None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\boxed{1} and \boxed{2", "1"),
        (r"\boxed{\frac{1}{2}} or } {", r"\frac{1}{2}"),
        (r"\boxed{3 \boxed{4}}", "4"),
        (r"\boxed{5} \boxed{ }", None),
    ],
)
def test_the_last_complete_box_counts(text: str, found: str | None) -> None:
    assert find_boxed(text) == found


@pytest.mark.timeout(5)
def test_thousands_of_boxes_that_are_never_closed_take_no_time() -> None:
    assert find_boxed("\\boxed{" * 20_000) is None


@settings(deadline=None)
@given(number=st.integers(-(10**12), 10**12))
def test_numbers_are_read_with_separators_and_currency(number: int) -> None:
    assert as_number(f"{number:,}") == number
    assert as_number(f"${abs(number)}.") == abs(number)


@settings(deadline=None)
@given(response=st.text(), truth=st.text())
def test_no_text_makes_a_reward_raise(response: str, truth: str) -> None:
    for name in ("exact", "contains", "gsm8k", "format"):
        assert REWARDS[name](response, truth) in (0.0, 1.0)


@pytest.mark.parametrize(
    ("solution", "answer"), [(GSM8K_TRUTH, "72"), (r"so \boxed{\frac{1}{2}}", r"\frac{1}{2}"), (" 7 ", "7")]
)
def test_the_answer_of_a_worked_solution(solution: str, answer: str) -> None:
    assert find_reference_answer(solution) == answer


#: Tries exponentially many ways through a text that it does not fit.
ENDLESS = r"(a|aa|a?a)+(b|c)\1d"
ENDLESS_TEXT = "a" * 5000 + "bd"


def test_a_pattern_that_goes_back_and_forth_is_ended_and_told(monkeypatch) -> None:
    monkeypatch.setattr(functions, "PATTERN_TIMEOUT_S", 0.2)
    start = time.process_time()

    with pytest.raises(TimeoutError, match=r"longer than 0\.2 s"):
        regex(ENDLESS_TEXT, "4", pattern=ENDLESS)
    assert time.process_time() - start < 5
    assert regex("abad", "a", pattern=ENDLESS) == 1.0


def test_a_schema_whose_pattern_goes_back_and_forth_is_ended_and_told(monkeypatch) -> None:
    monkeypatch.setattr(schema_check, "TIMEOUT_S", 0.2)
    schema = json.dumps({"properties": {"text": {"pattern": ENDLESS}}})

    with pytest.raises(TimeoutError, match="the schema could not be checked"):
        json_schema(json.dumps({"text": ENDLESS_TEXT}), "", schema=schema)
    assert json_schema('{"text": "abad"}', "", schema=schema) == 1.0
    assert json_schema('{"text": "bad"}', "", schema=schema) == 0.0


SCHEMA = '{"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}'


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ('{"total": 3}', 1.0),
        ('<think>hm</think>```json\n{"total": 3.5}\n```', 1.0),
        ('Here: ```json\n{"total": 1}\n``` or ```json\n{}\n```', 0.0),
        ('{"total": "3"}', 0.0),
        ('{"total": NaN}', 0.0),
        ('{"total": 3} and more', 0.0),
        ("", 0.0),
        ("[" * 100_000, 0.0),
        ('{"total": ' + "1" * 10_000 + "}", 0.0),
    ],
)
def test_json_schema(response: str, score: float) -> None:
    assert json_schema(response, "", schema=SCHEMA) == score


@pytest.mark.parametrize(("truth", "score"), [('{"total": 3.0}', 1.0), ('{"total": 4}', 0.0), ("true", 0.0)])
def test_json_may_have_to_equal_the_reference(truth: str, score: float) -> None:
    assert json_schema('{"total": 3}', truth, schema=SCHEMA, equals_answer=True) == score


def test_a_reference_that_is_no_json_is_an_error_of_the_dataset() -> None:
    with pytest.raises(ValueError, match="not valid JSON"):
        json_schema('{"total": 3}', "three", schema=SCHEMA, equals_answer=True)


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ('{"team": "billing", "urgent": true}', 1.0),
        ('{"team": "billing", "urgent": false}', 0.5),
        ('{"team": "delivery"}', 0.0),
        ('{"team": "billing", "urgent": 1}', 0.5),
        ("billing", 0.0),
        ("[1]", 0.0),
    ],
)
def test_json_schema_credits_single_fields_where_asked_for(response: str, score: float) -> None:
    truth = '{"team": "billing", "urgent": true}'

    assert json_schema(response, truth, schema="{}", partial_credit=True) == score


def test_a_schema_fetches_nothing_from_a_network() -> None:
    with pytest.raises(Exception, match=r"schema\.invalid"):
        json_schema("{}", "", schema='{"$ref": "http://schema.invalid/x"}')


@pytest.mark.parametrize(
    ("response", "lowest", "highest"),
    [("", 0, 0), ("one two three four five", 0, 0), ("go " * 100, -1, -0.95), ("你好你好你好你好", -1, -0.3)],
)
def test_repetition(response: str, lowest: float, highest: float) -> None:
    assert lowest <= repetition(response, "", ngram=2) <= highest


@pytest.mark.parametrize(("tokens", "score"), [(None, -0.5), (10, 0.0), (20, -1.0)])
def test_length_in_tokens(tokens: int | None, score: float) -> None:
    assert length("x" * 60, "", free_length=10, unit="tokens", tokens=tokens) == score
