"""No program passes tests but by right answers; the program after it is tested as ever."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from trellis_testing.forgeries import FORGERIES, Forgery
from trellis_train.sandbox import command, function_tests
from trellis_train.sandbox.errors import SandboxUnavailable
from trellis_train.sandbox.function_tests import FunctionTest, FunctionTester
from trellis_train.sandbox.limits import MIB

TEST = FunctionTest(
    function="add",
    before="def add(a, b):\n    '''Their sum.'''\n",
    test="def check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(19, b=23) == 42\n",
)
RIGHT = "def add(a, b):\n    return a + b\n"


@pytest.fixture(scope="module")
def tester() -> Iterator[FunctionTester]:
    tester = FunctionTester(
        timeout_s=1, memory_bytes=256 * MIB, packages=("numpy", "numpy.libs"), at_a_time=1
    )
    yield tester
    tester.close()


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_it_does_not_pass(tester: FunctionTester, forgery: Forgery) -> None:
    outcome = tester.run(forgery.code, TEST)

    assert not outcome.has_passed
    assert re.search(forgery.told, outcome.problem or ""), outcome
    assert "ESCAPED" not in outcome.printed
    assert tester.run(RIGHT, TEST).has_passed


def test_arguments_that_a_program_changes_are_copies(tester: FunctionTester) -> None:
    test = replace(
        TEST,
        test="def check(candidate):\n    given = [3, 1]\n    assert candidate(given, 0) == [1, 3]\n"
        "    assert given == [3, 1]\n",
    )

    outcome = tester.run("def add(a, b):\n    a.sort()\n    return a\n", test)

    assert outcome.has_passed, outcome


def test_tests_may_use_what_stands_before_the_function_and_its_name(tester: FunctionTester) -> None:
    before = "def twice(x):\n    return 2 * x\n\ndef add(a, b):\n    '''Their sum.'''\n"
    test = "def check(candidate):\n    assert candidate(2, 2) == twice(2)\n    assert add(1, 1) == twice(1)\n"

    # The program's own ``twice`` is not the tests'.
    outcome = tester.run(f"{RIGHT}def twice(x): return 0\n", FunctionTest("add", before, test))

    assert outcome.has_passed, outcome


EXPECTS_AN_ERROR = """
def check(candidate):
    try:
        candidate(1, "1")
    except BaseException:
        return
    assert False
"""


def test_tests_may_expect_an_error(tester: FunctionTester) -> None:
    test = replace(
        TEST,
        test=EXPECTS_AN_ERROR,
    )

    assert tester.run(RIGHT, test).has_passed
    assert not tester.run("def add(a, b): return 0", test).has_passed


@pytest.mark.parametrize("end", ["os._exit(0)", "os.closerange(0, 64)", "time.sleep(99)"])
def test_tests_that_expect_an_error_are_not_passed_by_leaving(tester: FunctionTester, end: str) -> None:
    test = replace(
        TEST, test="def check(candidate):\n    try: candidate(1, '1')\n    except: return\n    assert False\n"
    )

    assert not tester.run(f"import os, time\ndef add(a, b): {end}", test).has_passed


def test_what_a_program_remembers_is_kept_between_calls_and_no_longer(tester: FunctionTester) -> None:
    program = "seen = []\ndef add(a, b):\n    seen.append(a)\n    return len(seen)\n"
    test = replace(
        TEST, test="def check(candidate):\n    assert [candidate(1, 1), candidate(1, 1)] == [1, 2]\n"
    )

    assert tester.run(program, test).has_passed
    assert tester.run(program, test).has_passed


def test_chance_falls_alike_in_every_run(tester: FunctionTester) -> None:
    program = "import random\ndef add(a, b):\n    return random.random()\n"
    test = replace(TEST, test="def check(candidate):\n    assert False, candidate(1, 1)\n")

    assert tester.run(program, test).problem == tester.run(program, test).problem


def test_a_result_that_wears_out_the_tests_is_wrong_and_the_next_program_is_tested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(function_tests, "_TESTER_LIMITS", replace(function_tests._TESTER_LIMITS, wall_s=1.0))
    tester = FunctionTester(timeout_s=1, memory_bytes=256 * MIB, at_a_time=1)
    test = replace(TEST, test="def check(candidate):\n    assert sum(range(candidate(1, 1))) >= 0\n")
    try:
        outcome = tester.run("def add(a, b): return 10**15", test)

        assert "did not finish" in (outcome.problem or "")
        assert tester.run(RIGHT, test).has_passed
    finally:
        tester.close()


def test_nothing_is_run_without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.shutil, "which", lambda _name: None)
    command.require_sandbox.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="bubblewrap"):
            FunctionTester(timeout_s=1, memory_bytes=256 * MIB)
    finally:
        command.require_sandbox.cache_clear()


def test_other_packages_are_not_there(tester: FunctionTester) -> None:
    program = """
import numpy

def add(a, b):
    try:
        import yaml
    except ImportError:
        return numpy.int64(a + b)
"""

    assert Path(__import__("yaml").__file__).exists()
    assert tester.run(program, TEST).has_passed
