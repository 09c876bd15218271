"""Scores written code by the tests of its row, which run in the sandbox.

A program's output is compared outside the sandbox, so it cannot pass by what it does inside. Assert
statements are executed in a process apart from the code's, which never holds the values that they expect;
what they compare are copies of plain data. Two objects of the code's own classes are compared by the code.
"""

import ast
import asyncio
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from trellis_train.rewards.answers import after_thinking
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import RewardUnusable
from trellis_train.sandbox.errors import CodeNotLoaded, SandboxError, SandboxUnavailable, TooSlow
from trellis_train.sandbox.limits import MIB, Limits
from trellis_train.sandbox.program import run_program
from trellis_train.sandbox.statement_tests import StatementTester

MAX_TESTS = 100
#: Tests that take too long, after which the others are not waited for any more.
MAX_TIMEOUTS = 3
_CODE_BLOCK = re.compile(r"```([^\n`]*)\n(.*?)```", re.DOTALL)
_PYTHON = frozenset({"", "python", "py", "python3"})


@dataclass(frozen=True)
class CodeTests:
    """The tests of a row: statements that must not raise, or inputs with the outputs that they give."""

    asserts: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()


class CodeScorer:
    """The share of tests that the response's code passes."""

    def __init__(self, *, timeout_s: float, memory_mb: int) -> None:
        self._limits = Limits(
            wall_s=timeout_s, cpu_s=int(timeout_s) + 1, memory_bytes=memory_mb * MIB, output_bytes=MIB
        )
        #: As many programs at a time as there are processors.
        at_a_time = os.cpu_count() or 1
        try:
            self._tester = StatementTester(self._limits, at_a_time=at_a_time)
        except SandboxUnavailable as error:
            raise RewardUnusable(str(error)) from error
        self._slots = asyncio.Semaphore(at_a_time)

    async def score(self, sample: Sample) -> float:
        """Run all tests; a row without tests raises ``ValueError``."""
        tests = parse_tests(sample.answer)
        code = find_code(sample.response)
        if not code.strip():
            return 0.0
        async with self._slots:
            return await asyncio.to_thread(self._run, code, tests)

    async def load(self) -> None:
        """Do nothing: everything that can fail was checked in the constructor."""

    async def close(self) -> None:
        """End the processes of the tests."""
        await asyncio.to_thread(self._tester.close)

    def _run(self, code: str, tests: CodeTests) -> float:
        """Return the share of tests passed; after ``MAX_TIMEOUTS`` slow ones the rest of a kind fails."""
        source = code.encode("utf-8", "replace")
        passed = _count_pairs(source, tests.pairs, self._limits)
        passed += _count_asserts(source, tests.asserts, self._tester)
        return passed / (len(tests.asserts) + len(tests.pairs))


def find_code(response: str) -> str:
    """Return the last Python code block after the thinking, else the whole answer."""
    answer = after_thinking(response)
    blocks = [code for language, code in _CODE_BLOCK.findall(answer) if language.strip().lower() in _PYTHON]
    return str(blocks[-1]) if blocks else answer


@lru_cache(maxsize=4096)
def parse_tests(truth: str) -> CodeTests:
    """Parse the tests in a reference answer; ``ValueError`` if there are none.

    Either ``{"asserts": [...]}``, ``{"inputs": [...], "outputs": [...]}``, a JSON list of statements,
    or plain Python: its assert statements, each after the other statements above it.
    """
    try:
        parsed = json.loads(truth)
    except (ValueError, RecursionError):
        return _limit(CodeTests(asserts=_split_asserts(truth)))
    if isinstance(parsed, list):
        parsed = {"asserts": parsed}
    if isinstance(parsed, dict):
        asserts, inputs, outputs = (parsed.get(name) or [] for name in ("asserts", "inputs", "outputs"))
        if all(_are_texts(each) for each in (asserts, inputs, outputs)) and len(inputs) == len(outputs):
            return _limit(CodeTests(tuple(asserts), tuple(zip(inputs, outputs, strict=True))))
    raise ValueError(
        'the reference answer contains no tests ("asserts", or "inputs" and "outputs" as strings)'
    )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _split_asserts(text: str) -> tuple[str, ...]:
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the reference answer contains no tests: {error}") from error
    before: list[str] = []
    asserts: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.Assert):
            asserts.append("\n".join([*before, ast.unparse(statement)]))
        else:
            before.append(ast.unparse(statement))
    return tuple(asserts)


def _limit(tests: CodeTests) -> CodeTests:
    count = len(tests.asserts) + len(tests.pairs)
    if not 1 <= count <= MAX_TESTS:
        raise ValueError(f"the reference answer contains {count} tests; allowed are 1 to {MAX_TESTS}")
    return tests


def _count_pairs(code: bytes, pairs: Sequence[tuple[str, str]], limits: Limits) -> int:
    passed = timeouts = 0
    for given, wanted in pairs:
        started = time.monotonic()
        outcome = run_program(code, standard_input=given, limits=limits)
        if outcome.is_clean and _lines(outcome.output) == _lines(wanted):
            passed += 1
        elif time.monotonic() - started >= limits.wall_s:
            timeouts += 1
            if timeouts == MAX_TIMEOUTS:
                break
    return passed


def _lines(text: str) -> list[str]:
    """Split into lines without trailing white space, and without empty lines at the end of all."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _count_asserts(code: bytes, asserts: Sequence[str], tester: StatementTester) -> int:
    if not asserts:
        return 0
    passed = timeouts = 0
    program = tester.load(code, tests=len(asserts))
    try:
        for test in asserts:
            try:
                passed += program.passes(test)
            except CodeNotLoaded:
                break  # it would fail every test, each after the same wait
            except TooSlow:
                timeouts += 1
                if timeouts == MAX_TIMEOUTS:
                    break
            except SandboxError:
                continue
    finally:
        program.close()
    return passed
