"""What counts as an answer: numbers as people write them, marks, phrases, letters."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_train.evaluate.extraction import (
    answer_part,
    choice_letter,
    gsm8k_flexible,
    gsm8k_strict,
    last_number,
    math_answer,
)
from trellis_train.evaluate.numbers import find_numbers, read_number

#: Text with what extraction looks for in it.
MARKS = (
    "####",
    r"\boxed{",
    "}",
    "$",
    "the answer is",
    "Answer:",
    "<think>",
    "</think>",
    "(B)",
    "**",
    "\n",
    "%",
)
NUMBERS = ("18", "-3", "1,234", "3/4", "1 1/2", r"\frac{1}{2}", "=", ".5", "$", "\u2212", "٣", "²", "1" * 60)
texts = st.lists(st.one_of(st.sampled_from(MARKS + NUMBERS), st.text(max_size=12))).map(" ".join) | st.text()
CHOICES = ["iron", "carbon", "zinc", "tin"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", 18),
        ("1,234", 1234),
        ("1,234,567.5", Fraction("1234567.5")),
        ("12,00,000", 1_200_000),
        ("$1,450", 1450),
        ("\\$20", 20),
        ("€ 3.50", Fraction("3.5")),
        ("-7", -7),
        ("\u22127", -7),
        ("-$7", -7),
        ("$-7", -7),
        ("3/4", Fraction(3, 4)),
        ("-3/4", Fraction(-3, 4)),
        ("2 1/2", Fraction(5, 2)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"1{,}000", 1000),
        (".5", Fraction(1, 2)),
        ("007", 7),
    ],
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert read_number(text) == value


@pytest.mark.parametrize("text", ["", "x", "12,34", "1.2.3", "3 apples", "1/0", "--3", "5:30", "1e5"])
def test_other_texts_are_no_numbers(text):
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("共18个", ["18"]),
        ("10-5=5", ["10", "5", "5"]),
        ("it is -5", ["-5"]),
        ("x2 is 5", ["5"]),
        ("Rs.500 or so", ["500"]),
        ("in total ...18", ["18"]),
    ],
)
def test_numbers_are_found_in_sentences(text, found):
    assert find_numbers(text) == found


@settings(deadline=None)  # other work may hold the processor
@given(
    st.integers(-(10**12), 10**12), st.sampled_from(["{}", "{:,}", "{}.00", "{:,} dollars", "**{}**", "{}."])
)
def test_a_whole_number_is_found_however_it_is_written(number, form):
    written = form.format(number)

    strict, flexible = gsm8k_strict(f"#### {written}"), gsm8k_flexible(f"So she has {written}")

    assert strict is not None
    assert flexible is not None
    assert read_number(strict) == read_number(flexible) == number


@settings(deadline=None)  # other work may hold the processor
@given(st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**6))
def test_a_fraction_is_found(value):
    found = gsm8k_strict(f"\\boxed{{{value}}}")

    assert found is not None
    assert read_number(found) == value


@settings(deadline=None)  # other work may hold the processor
@given(texts)
def test_extraction_never_raises_and_finds_the_same_in_what_it_found(text):
    for extract in (gsm8k_strict, gsm8k_flexible, last_number, math_answer, answer_part):
        extract(text)
    choice_letter(text, CHOICES)
    number = last_number(text)
    if number is not None:
        assert read_number(number) is not None
        assert last_number(number) == number
    answer = math_answer(text)
    if answer is not None:
        assert answer == answer.strip() != ""
        assert (
            "<think>" in text
            or math_answer(f"\\boxed{{{answer}}}") == answer
            or "{" in answer
            or "}" in answer
        )


@settings(deadline=None)  # other work may hold the processor
@given(texts)
def test_what_is_strict_is_also_flexible(text):
    strict = gsm8k_strict(text)

    assert strict is None or gsm8k_flexible(text) == strict


@settings(deadline=None)  # other work may hold the processor
@given(texts)
def test_an_answer_after_thinking_is_itself(text):
    kept = answer_part(text)

    assert answer_part(kept) == kept or "<think>" in kept
    assert answer_part(f"{text}</think>18") == "18"
    assert answer_part(f"</think><think>{text.replace('</think>', '')}") == ""


@pytest.mark.parametrize(
    "text", ["1" * 100_000, "1," * 50_000, r"\boxed{" * 20_000, "1 " * 50_000, "answer is " * 20_000]
)
@pytest.mark.timeout(20)
def test_long_texts_take_no_time(text):
    for extract in (gsm8k_strict, gsm8k_flexible, math_answer):
        extract(text)
    choice_letter(text, CHOICES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#### 18", "18"),
        ("####18 eggs a day", "18"),
        ("#### x = 3 + 4 = 7", "7"),
        ("#### 12 - 5 = 7", "7"),
        ("#### 5 (since 2 + 3 = 5)", "5"),
        (r"\boxed{18} and no, #### 19", "19"),
        (r"#### 19, which is \boxed{18}", "18"),
        ("#### ", None),
        ("the answer is 18", None),
    ],
)
def test_strict_extraction(text, found):
    assert gsm8k_strict(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"so \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1}, or rather \boxed{\{1, \{2\}\}}", r"\{1, \{2\}\}"),
        (r"it is \boxed 5", "5"),
        ("Final Answer: The final answer is $[2,5)$. I hope it is correct.", "[2,5)"),
        ("The final answer is 3.5. I hope it is correct.", "3.5"),
        ("#### 12", "12"),
        (r"The answer is \(x + 1\).", "x + 1"),
        ("**Answer:** $7$", "7"),
        ("so we have $7$", None),
    ],
)
def test_mathematical_answers(text, found):
    assert math_answer(text) == found


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        (" b", "B"),
        ("(B)", "B"),
        ("b) carbon", "B"),
        ("B. carbon", "B"),
        ("**B**", "B"),
        ("The answer is (B).", "B"),
        ("The correct answer is **B**.", "B"),
        ("Answer: B", "B"),
        (r"\boxed{\text{B}}", "B"),
        ("carbon", "B"),
        ("The answer is carbon.", "B"),
        ("It is not (A), so I take (B)", "B"),
        ("A cat sat on the mat", None),
        ("Zinc or tin, who knows", None),
        ("E", None),
        ("", None),
    ],
)
def test_letters(text, letter):
    assert choice_letter(text, CHOICES) == letter
