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
    with pytest.raises(ValueError, match=f"contains {MAX_TESTS + 1} tests"):
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


SEARCH = """
import gc, sys
def holders():
    frame = sys._getframe()
    while frame is not None:
        yield from (frame.f_locals.values(), frame.f_globals.values(), frame.f_code.co_consts)
        frame = frame.f_back
    for each in gc.get_objects():
        if type(each) in (dict, list, tuple):
            yield each.values() if type(each) is dict else each
def double(x):
    for holder in holders():
        for text in list(holder):
            if type(text) is str and "wan" "ted-" in text:
                found = text[text.index("wan" "ted-") :]
                if len(found) > len("wan" "ted-"):
                    return found.split("'")[0]
"""


def test_the_value_that_a_test_expects_is_nowhere_in_the_code_s_process() -> None:
    assert score(block(SEARCH), ["assert double(1) == 'wanted-7f3a'"], timeout_s=20) == 0.0


@pytest.mark.parametrize(
    "code",
    [
        "class Yes(int):\n    __eq__ = lambda *_: True\n    __sub__ = lambda *_: 0\n"
        "double = lambda x: Yes(5)",
        "class Yes:\n    __eq__ = __lt__ = __le__ = __rsub__ = __contains__ = lambda *_: True\n"
        "    __sub__ = lambda *_: 0\n    __abs__ = lambda _: 0\ndouble = lambda x: Yes()",
        "import builtins\nbuiltins.abs = abs = lambda _: 0\ndouble = lambda x: x",
        "class math:\n    isclose = lambda *_: True\ndouble = lambda x: x",
        "import builtins\nbuiltins.AssertionError = None\ndouble = lambda x: x",
    ],
    ids=["an int", "an object", "its own abs", "its own math", "no assertions"],
)
def test_code_that_redefines_equality_passes_nothing(code: str) -> None:
    tests = [
        "assert double(1) == 2",
        "assert abs(double(1) - 2) < 0.1",
        "assert math.isclose(double(1), 2)",
        "assert [double(1)] == [2]",
        "assert double(1) in {2, 3}",
        "assert isinstance(double(1), float)",
    ]

    assert score(block(code), tests) == 0.0


STACK = """
class Empty(ValueError):
    pass
class Stack:
    def __init__(self, items=()):
        self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def pop(self):
        if not self.items:
            raise Empty("nothing there")
        return self.items.pop()
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, at): return self.items[at]
    def __eq__(self, other): return self.items == other.items
    def __repr__(self): return f"Stack({self.items})"
LIMIT = 5
def fill(stack, count): [stack.push(n) for n in range(count)]
def reverse(items): items.reverse()
def rename(row, to): row["name"] = to
def apply(function, *items): return [function(item) for item in items]
def count(): yield from (1, 2, 3)
def fail(): raise KeyError("no such key")
"""


@pytest.mark.parametrize(
    "test",
    [
        "s = Stack()\nfill(s, 3)\nassert s.pop() == 2 and len(s) == 2 and list(s) == [0, 1] and s[0] == 0",
        "assert Stack([1]) == Stack([1]) and Stack([1]) != Stack([2])",
        "assert isinstance(Stack(), Stack) and str(Stack([1])) == 'Stack([1])' and Stack([1]).items == [1]",
        "s = Stack()\ns.name = 'x'\nassert s.name == 'x' and hasattr(s, 'items') and not hasattr(s, 'other')",
        "items = [3, 1]\nreverse(items)\nassert items == [1, 3]",
        "row = {}\nrename(row, to='x')\nassert row == {'name': 'x'}",
        "assert apply(lambda x: x + 1, 1, 2) == [2, 3] and apply(len, 'ab') == [2]",
        "assert list(count()) == [1, 2, 3] and sum(count()) == 6 and LIMIT == 5",
        "try:\n    fail()\n    assert False, 'it did not raise'\n"
        "except KeyError as error:\n    assert 'no such' in str(error)",
        "import itertools\nassert next(itertools.islice(count(), 1, 2)) == 2",
        "assert math.sqrt(LIMIT - 1) == 2 and np.allclose([LIMIT], [5.0])",
    ],
)
def test_tests_may_use_classes_objects_and_errors_of_the_code(test: str) -> None:
    assert score(block(STACK), [test]) == 1.0


def test_a_function_may_bear_the_name_of_a_built_in() -> None:
    assert score(block("def sum(items):\n    return 7"), ["assert sum([1]) == 7"]) == 1.0


def test_tests_that_give_the_code_objects_of_their_own_are_an_error_of_the_row() -> None:
    test = "class Node:\n    value = 2\nassert double(Node()) == 4"

    with pytest.raises(ValueError, match="type Node are not supported"):
        score(block("def double(node):\n    return 2 * node.value"), [test])
