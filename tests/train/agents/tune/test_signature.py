"""A workflow's signature is checked as a whole before anything starts (C1, C2)."""

import functools
import importlib.util
import logging
import threading
from collections.abc import Callable
from typing import Any, Dict  # noqa: UP035 - as people write it

import pytest
from trellis_contracts import engine_install
from trellis_contracts.workflows import JudgeOutput, TunableChatModel, WorkflowOutput
from trellis_train.agents.tune.signature import InvalidWorkflow, validate_workflow


async def right(task: Dict, model: TunableChatModel) -> float:  # noqa: UP006
    return 0.0


async def right_in_full(task: dict[str, Any], model: "TunableChatModel") -> WorkflowOutput:
    return WorkflowOutput(response="x")


async def judge(task: dict, response: Any) -> JudgeOutput:
    return JudgeOutput(0.0)


def not_async(task: dict, model: TunableChatModel) -> float:
    return 0.0


async def swapped(model: TunableChatModel, task: dict) -> float:
    return 0.0


async def named_otherwise(row: dict, model: TunableChatModel) -> float:
    return 0.0


async def too_many(task: dict, model: TunableChatModel, more: int) -> float:
    return 0.0


async def untyped(task, model: TunableChatModel) -> float:  # type: ignore[no-untyped-def]
    return 0.0


async def wrongly_typed(task: list, model: TunableChatModel) -> float:
    return 0.0


async def returns_text(task: dict, model: TunableChatModel) -> str:
    return ""


async def starred(task: dict, model: TunableChatModel, *rest: Any, **more: Any) -> float:
    return 0.0


async def unresolved(task: "Nowhere", model: TunableChatModel) -> float:  # type: ignore[name-defined]  # noqa: F821
    return 0.0


def make_unpicklable() -> Callable[..., Any]:
    lock = threading.Lock()

    async def holds_a_lock(task: dict, model: TunableChatModel) -> float:
        return float(lock.locked())

    return holds_a_lock


def faults_of(func: Any, judge: Any = None) -> list[tuple[str, str | None]]:
    with pytest.raises(InvalidWorkflow) as caught:
        validate_workflow(func, judge)
    return [(fault.code, fault.param) for fault in caught.value.faults]


@pytest.mark.parametrize("func", [right, right_in_full])
def test_right_signatures_pass(func: Any) -> None:
    validate_workflow(func, judge)


@pytest.mark.parametrize(
    ("func", "fault"),
    [
        (3, ("NOT_CALLABLE", None)),
        (not_async, ("NOT_ASYNC", None)),
        (swapped, ("PARAM_ORDER", None)),
        (named_otherwise, ("PARAM_NAME", "row")),
        (too_many, ("PARAM_COUNT", None)),
        (untyped, ("MISSING_ANNOTATION", "task")),
        (wrongly_typed, ("PARAM_TYPE", "task")),
        (returns_text, ("RETURN_TYPE", "return")),
        (unresolved, ("UNRESOLVED_HINT", None)),
        (make_unpicklable(), ("NOT_PICKLABLE", None)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_single_fault_is_the_only_one_reported(func: Any, fault: tuple[str, str | None]) -> None:
    assert faults_of(func) == [fault]


def test_stars_are_reported_each() -> None:
    assert faults_of(starred) == [("VAR_ARGS", "rest"), ("VAR_ARGS", "more")]


def test_parameters_that_go_by_name_alone_are_refused() -> None:
    async def named(task: dict, *, model: TunableChatModel) -> float:
        return 0.0

    assert faults_of(named) == [("KEYWORD_ONLY", "model")]


def test_a_partial_is_refused_in_words() -> None:
    async def bound(task: dict, model: TunableChatModel, scale: float) -> float:
        return scale

    with pytest.raises(InvalidWorkflow, match=r"PARTIAL: .* got functools\.partial of bound"):
        validate_workflow(functools.partial(bound, scale=2.0))


def test_all_faults_are_reported_at_once_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def wrong(row: list, model, *rest) -> str:  # type: ignore[no-untyped-def]
        return ""

    with caplog.at_level(logging.ERROR):
        found = faults_of(wrong)
    codes = {code for code, _ in found}
    assert codes == {
        "NOT_ASYNC", "VAR_ARGS", "PARAM_NAME", "PARAM_TYPE", "MISSING_ANNOTATION", "RETURN_TYPE",
    }  # fmt: skip
    assert all(any(code in line for line in caplog.messages) for code in codes)


def test_a_fault_says_what_was_expected_and_what_came() -> None:
    with pytest.raises(ValueError, match="expected Dict, got list") as caught:
        validate_workflow(wrongly_typed)
    (fault,) = caught.value.faults  # type: ignore[attr-defined]
    assert (fault.code, fault.param, fault.expected, fault.got) == ("PARAM_TYPE", "task", "Dict", "list")


def test_a_judge_is_checked_too() -> None:
    assert faults_of(right, right) == [("PARAM_NAME", "model"), ("RETURN_TYPE", "return")]


def test_a_missing_engine_comes_before_the_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    def hide(name: str) -> Any:
        return None if name == "verl" else importlib.util.find_spec(name)

    monkeypatch.setattr(engine_install, "find_spec", hide)
    with pytest.raises(ImportError, match=r"pip install '\.\[train\]'"):
        validate_workflow("not even a function")
