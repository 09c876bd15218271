"""When two mathematical answers are the same, and that every comparison ends."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from trellis_train.evaluate.math_answers import are_same_answers
from trellis_train.rewards import math_check

MATRIX = r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (r"\frac12", "0.5"),
        (r"50\%", "0.5"),
        ("50 percent", r"\frac{1}{2}"),
        ("0.5", r"50\%"),
        ("50", r"50\%"),
        ("1,2", "2,1"),
        (r"\{3, 2, 1\}", r"\{1,2,3\}"),
        (r"\pm 3", "3,-3"),
        ("[1,2)", "[1, 2)"),
        (r"(-\infty,2)\cup(3,\infty)", r"(-\infty, 2) \cup (3, \infty)"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", MATRIX),
        (r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", MATRIX),
        (r"\left(3,\frac{\pi}{2}\right)", r"(3,\pi/2)"),
        (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
        ("(x+1)^2", "x^2+2x+1"),
        ("3+4i", "4i+3"),
        ("x=5", "5"),
        ("x = 14,400", r"14,\!400"),
        (r"S_{20} = \$14,400", "14400"),
        ("1 1/2", r"\frac32"),
        (r"1\frac12", "3/2"),
        ("10,000", r"10{,}000"),
        ("10000", r"10,\!000"),
        ("18.90", r"\$18.90"),
        ("60", r"60^\circ"),
        ("5", r"5\text{ cm}"),
        ("5 dollars", "5"),
        ("C", r"\text{(C)}"),
        ("Evelyn", r"\text{Evelyn}"),
        ("0.333333", r"\frac13"),
    ],
)
def test_the_same_answer_in_other_words(found, wanted):
    assert are_same_answers(found, wanted) is True


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("0.33", r"\frac13"),
        ("(1,2)", "(2,1)"),
        ("(1,2)", "[1,2]"),
        ("1,2", "1,2,3"),
        (r"\begin{pmatrix}1&2\\3&5\end{pmatrix}", MATRIX),
        ("x^2+1", "x^2-1"),
        ("5 million", "5"),
        ("", "5"),
        ("I do not know", "5"),
    ],
)
def test_another_answer(found, wanted):
    assert are_same_answers(found, wanted) is False


@pytest.mark.parametrize(
    ("found", "wanted", "question", "is_same"),
    [
        (r"50\%", "50", "What percent of the girls sing?", True),
        ("50", r"50\%", "What percent of the girls sing?", True),
        (r"50\%", "50", "How many girls sing?", False),
        (r"50\%", "50", "Of them 20 percent sing. How many girls are there?", False),
        ("0.5", "50", "What percent of the girls sing?", False),
        (r"0.5\%", r"50\%", "What percent of the girls sing?", False),
    ],
)
def test_percents_count_as_the_question_asks(found, wanted, question, is_same):
    assert are_same_answers(found, wanted, question) is is_same


@pytest.mark.slow
def test_a_comparison_that_does_not_end_is_undecided_and_harms_no_other(monkeypatch):
    monkeypatch.setattr(math_check, "TIMEOUT_S", 1.0)
    start = time.monotonic()

    with ThreadPoolExecutor(8) as pool:
        asked = [("(10^{10^9})!", "3"), (r"\frac{6}{14}", r"\frac{3}{7}+0"), ("2x", "x+x")] * 2
        answers = list(pool.map(lambda pair: math_check.compare_expressions(*pair), asked))

    assert answers == [None, True, True] * 2
    assert time.monotonic() - start < 120


@pytest.mark.slow
def test_children_are_no_more_than_processors_and_end_when_told():
    with ThreadPoolExecutor(16) as pool:
        pairs = [(f"{n}x + {n}", f"{n}(x+1)") for n in range(2, 34)]
        assert all(pool.map(lambda pair: math_check.compare_expressions(*pair), pairs))

    math_check.end_children()

    assert math_check.compare_expressions("2x", "x+x")
