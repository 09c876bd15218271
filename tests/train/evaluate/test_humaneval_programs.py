"""Which program an answer holds, in the ways in which models write."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_train.evaluate.humaneval.code import cut_at_stops, find_program

PROMPT = (
    "from typing import List\n\n\ndef total(numbers: List[int], start: int = 0) -> int:\n"
    '    """ The sum.\n    >>> total([1, 2])\n    3\n    """\n'
)
BODY = "    for number in numbers:\n        start += number\n    return start\n"
SIGNATURE = "def total(numbers, start=0):\n"
FUNCTION = SIGNATURE + BODY
WRONG = SIGNATURE + "    return 0\n"
HELPER = "def plus(a, b):\n    return a + b\n"
WITH_HELPER = (
    "def total(numbers, start=0):\n    for n in numbers:\n        start = plus(start, n)\n    return start\n"
)
UNINDENTED = "for number in numbers:\n    start += number\nreturn start\n"


def fenced(code: str, language: str = "python", mark: str = "```") -> str:
    return f"{mark}{language}\n{code}{mark}\n"


OUTPUTS = {
    "a completion": BODY,
    "a completion after an empty line": "\n" + BODY,
    "a completion and the next function": BODY + "\n\ndef other():\n    pass\n",
    "a completion and a call": BODY + "\nprint(total([1]))\n",
    "a completion and words": BODY + "\nThis adds the numbers up, as it's asked.\n",
    "a completion whose first line lost its margin": BODY.lstrip(),
    "a completion and the end of a fence": BODY + "```\n\nIt adds them up.",
    "a whole function": FUNCTION,
    "the prompt again": PROMPT + BODY,
    "a whole function and a call": FUNCTION + "\n\nprint(total([1, 2]))",
    "words and a whole function": f"Sure! Here it is:\n\n{FUNCTION}",
    "words, a function and words": f"From what you say:\n\n{FUNCTION}\nThis isn't hard.\n\nHope it helps!",
    "a block": f"Here it is.\n\n{fenced(FUNCTION)}\nIt adds them up.",
    "a block of the prompt and body": fenced(PROMPT + BODY),
    "a block without a language": fenced(FUNCTION, ""),
    "a block of py": fenced(FUNCTION, "py"),
    "a block of Python 3": fenced(FUNCTION, "Python3"),
    "a block of tildes": fenced(FUNCTION, mark="~~~"),
    "a block of four marks": fenced(FUNCTION, mark="````"),
    "a block that was cut": "```python\n" + FUNCTION,
    "a block that was cut in a line": "```python\n" + FUNCTION + "\n\nprint(total([1,",
    "a block in a list": "1. So:\n" + "".join(f"   {line}\n" for line in fenced(FUNCTION).splitlines()),
    "a block of the body": fenced(BODY),
    "a block of the body without its margin": fenced(UNINDENTED),
    "a block, and one that calls it": fenced(FUNCTION) + "\nUse it:\n" + fenced("print(total([1, 2]))\n"),
    "a first try, and a better one": fenced(WRONG) + "Wrong! Better:\n" + fenced(FUNCTION),
    "a block of the prompt, then the function": fenced(PROMPT) + "becomes\n" + fenced(FUNCTION),
    "a block of a shell first": fenced("pip install numpy\n", "bash") + fenced(FUNCTION),
    "output at the end": fenced(FUNCTION) + "which gives\n" + fenced("3\n", "text"),
    "after thinking": f"<think>\nHm:\n{fenced(WRONG)}</think>\n{fenced(FUNCTION)}",
    "after thinking without a beginning": f"Let me see.\n</think>\n\n{fenced(FUNCTION)}",
    "imports from the future": fenced("from __future__ import annotations\n" + FUNCTION),
    "an import": fenced("import math\n\n" + FUNCTION),
    "a decorator": "So:\n\n@staticmethod\n" + FUNCTION,
    "a lambda": fenced("total = lambda numbers, start=0: sum(numbers, start)\n"),
    "a helper in the same block": fenced(HELPER + "\n\n" + WITH_HELPER),
    "a helper in a block before": fenced(HELPER) + "and\n" + fenced(WITH_HELPER),
    "a helper in a block after": fenced(WITH_HELPER) + "with\n" + fenced(HELPER),
    "lines that end as on Windows": fenced(FUNCTION).replace("\n", "\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_the_program_of_an_answer_is_found(output: str) -> None:
    found = find_program(output, PROMPT, "total")

    assert found is not None
    names: dict[str, object] = {}
    exec(found.program, names)
    total = names["total"]
    assert callable(total)
    assert (total([1, 2, 3]), total([1], 4)) == (6, 5), found.program


@pytest.mark.parametrize(
    "output",
    [
        "",
        "  \n",
        "I cannot write that.",
        "The answer is 5.",
        "<think>def total(numbers):\n    return 1",
        "# nothing",
    ],
)
def test_no_program_is_found_where_there_is_none(output: str) -> None:
    assert find_program(output, PROMPT, "total") is None


@pytest.mark.parametrize(
    "output",
    ["    return sum(numbers", fenced("def total(:\n"), fenced("print(3)\n"), "    pass\n"],
)
def test_code_with_an_error_is_a_program_all_the_same(output: str) -> None:
    found = find_program(output, PROMPT, "total")

    assert found is not None
    assert found.program.startswith(PROMPT.rstrip())


PIECES = ["```python\n", "```", BODY, FUNCTION, "\n", "def total(", "x", "("]


@settings(deadline=None, max_examples=80)
@given(
    st.text()
    | st.lists(st.sampled_from(["```python\n", "```", BODY, FUNCTION, "\n", "def total(", "x", "("])).map(
        "".join
    )
)
def test_any_text_is_read(output: str) -> None:
    found = find_program(output, PROMPT, "total")

    assert found is None or found.code.strip()


def test_nesting_without_end_is_no_program() -> None:
    assert find_program("(" * 100_000, PROMPT, "total") is None
    assert find_program("```python\n" + "-" * 100_000 + "1\n```", PROMPT, "total") is not None


@pytest.mark.parametrize(
    "piece", ["`", "~", " ", "```", "```\n", "def f(\n", "if 1:\n ", "from x import y\n", "try:\n"]
)
@pytest.mark.timeout(20)
def test_long_answers_are_read_in_time(piece: str) -> None:
    output = piece * (200_000 // len(piece))

    find_program(output, PROMPT, "total")
    find_program("    " + output, PROMPT, "total")


def test_a_completion_ends_where_the_next_thing_begins() -> None:
    assert cut_at_stops("    return 1\n\nif x:\n    y\n") == "    return 1\n"
    assert cut_at_stops("    return 1\n") == "    return 1\n"


def test_the_program_is_the_prompt_and_the_completion_to_the_letter() -> None:
    found = find_program(BODY, PROMPT, "total")

    assert found is not None
    assert (found.code, found.program) == (BODY, PROMPT + BODY)
    assert ast.parse(found.program)
