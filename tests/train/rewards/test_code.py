"""The reward `code`: written programs and functions against the tests of their row, in the real sandbox."""

import asyncio
import json

import pytest
from trellis_train.rewards.code_tests import MAX_TESTS, MAX_TIMEOUTS, CodeScorer, find_code, parse_tests
from trellis_train.rewards.sample import Sample

DOUBLE = "def double(x):\n    return 2 * x"
THREE_ASSERTS = ["assert double(1) == 2", "assert double(-2) == -4", "assert double(0) == 0"]
SUMS = {"inputs": ["1 2\n", "3 4\n", "10 -3\n"], "outputs": ["3\n", "7\n", "7\n"]}
ADD = "print(sum(int(word) for word in input().split()))"


def block(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"


def score(response: str, tests: object, *, timeout_s: float = 5.0) -> float:
    answer = tests if isinstance(tests, str) else json.dumps(tests)
    scorer = CodeScorer(timeout_s=timeout_s, memory_mb=256)
    return asyncio.run(scorer.score(Sample(response=response, answer=answer)))


@pytest.mark.parametrize(
    "tests",
    [
        "\n".join(THREE_ASSERTS),
        THREE_ASSERTS,
        {"asserts": THREE_ASSERTS},
        "import math\nwanted = math.floor(4.5)\nassert double(2) == wanted",
    ],
    ids=["plain Python", "JSON list", "JSON object", "with what the asserts need"],
)
def test_code_that_passes_all_its_asserts_earns_everything(tests: object) -> None:
    assert score(f"<think>twice</think>Here it is:\n{block(DOUBLE)}", tests) == 1.0


def test_a_program_is_judged_by_what_it_prints() -> None:
    assert score(block(ADD), SUMS) == 1.0
    assert score(block("print(7)"), SUMS) == pytest.approx(2 / 3)


def test_white_space_at_the_ends_of_lines_does_not_count_but_lines_do() -> None:
    tests = {"inputs": ["", ""], "outputs": ["1\n2\n", "1 2\n"]}

    assert score(block("print('1  ')\nprint('2')\nprint()"), tests) == 0.5


def test_asserts_and_programs_may_stand_together() -> None:
    tests = {"asserts": ["assert double(1) == 2"], "inputs": ["x"], "outputs": ["hello"]}

    assert score(block(DOUBLE), tests) == 0.5


def test_the_share_of_passed_tests_counts() -> None:
    tests = [*THREE_ASSERTS, "assert double(1) == 3"]

    assert score(block(DOUBLE), tests) == 0.75


def test_a_test_that_raises_leaves_the_others_as_they_are() -> None:
    code = "def double(x):\n    if x < 0:\n        raise SystemExit(0)\n    return 2 * x"

    assert score(block(code), THREE_ASSERTS) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (f"{block('first')}\nbetter:\n{block('second')}", "second\n"),
        (f"<think>{block('a thought')}</think>{block('the answer')}", "the answer\n"),
        (f"{block('pip install x', 'bash')}\nthen\n{block('the answer')}", "the answer\n"),
        (f"{block('the answer')}\nprints\n{block('7', 'text')}", "the answer\n"),
        (block("the answer", ""), "the answer\n"),
        (block("the answer", "Python3"), "the answer\n"),
        ("the answer", "the answer"),
    ],
)
def test_the_last_block_of_python_is_the_code_else_the_whole_answer(response: str, code: str) -> None:
    assert find_code(response) == code


def test_the_last_code_block_wins() -> None:
    wrong = block("def double(x):\n    return x")

    assert score(f"{wrong}\nNo, rather:\n{block(DOUBLE)}", THREE_ASSERTS) == 1.0
    assert score(f"{block(DOUBLE)}\nNo, rather:\n{wrong}", THREE_ASSERTS) == pytest.approx(1 / 3)


@pytest.mark.parametrize("response", ["", "<think>hm</think>", block("  "), "def double(x:", block("1 / 0")])
def test_what_is_no_working_code_earns_nothing(response: str) -> None:
    assert score(response, THREE_ASSERTS) == 0.0


def test_a_test_that_takes_too_long_fails_alone() -> None:
    code = "def double(x):\n    while x < 0:\n        pass\n    return 2 * x"

    assert score(block(code), THREE_ASSERTS, timeout_s=0.5) == pytest.approx(2 / 3)


def test_a_program_that_takes_too_long_fails_alone() -> None:
    wait = "while '-' in line:\n    time.sleep(1)"
    patient = f"import time\nline = input()\n{wait}\n{ADD.replace('input()', 'line')}"

    assert score(block(patient), SUMS, timeout_s=0.5) == pytest.approx(2 / 3)


def test_code_that_keeps_being_slow_is_not_waited_for_in_every_test() -> None:
    tests = ["assert double(-1) == -2"] * (MAX_TIMEOUTS + 20) + THREE_ASSERTS
    code = "def double(x):\n    while x < 0:\n        pass\n    return 2 * x"

    assert score(block(code), tests, timeout_s=0.2) == 0.0


def test_code_that_hangs_while_it_is_loaded_earns_nothing() -> None:
    assert score(block("while True:\n    pass"), THREE_ASSERTS * 10, timeout_s=0.3) == 0.0


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos._exit(0)",
        "import os\ndef double(x):\n    os._exit(0)",
        "import sys\nsys.exit(0)",
        'print(\'{"id": 1, "passed": true}\')\ndef double(x):\n    print("passed", "OK", flush=True)',
        'import json\ndef double(x):\n    print(json.dumps({"id": 1, "passed": "0" * 32}), flush=True)',
    ],
    ids=["leaves at once", "leaves in a test", "exits at once", "prints a verdict", "prints a token"],
)
def test_leaving_early_or_printing_success_passes_nothing(code: str) -> None:
    assert score(block(code), THREE_ASSERTS) == 0.0


def test_leaving_early_is_no_clean_end_of_a_program_without_its_output() -> None:
    assert score(block("import os\nprint('3', flush=True)\nos._exit(1)"), SUMS) == 0.0


def test_more_tests_than_can_be_run_are_an_error_of_the_row() -> None:
    assert len(parse_tests(json.dumps(["assert True"] * MAX_TESTS)).asserts) == MAX_TESTS
    with pytest.raises(ValueError, match=f"holds {MAX_TESTS + 1} tests"):
        score(block(DOUBLE), ["assert True"] * (MAX_TESTS + 1))


@pytest.mark.parametrize(
    "tests",
    [
        "",
        "7",
        "forty-two",
        "x = 1",
        "[]",
        "{}",
        '{"asserts": [1]}',
        '{"asserts": "assert True"}',
        '{"inputs": "12", "outputs": "12"}',
        '{"inputs": ["1"], "outputs": []}',
        '{"inputs": ["1"]}',
        "null",
    ],
)
def test_a_row_without_tests_is_an_error_of_the_row(tests: str) -> None:
    with pytest.raises(ValueError, match="tests"):
        score(block(DOUBLE), tests)
