"""Checks a workflow's signature before anything is started, and says all that is wrong at once."""

import functools
import inspect
import logging
import pickle
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from trellis_contracts.engine_install import require_engine
from trellis_contracts.workflows import JudgeOutput, TunableChatModel, WorkflowOutput
from trellis_recipes.workflows.source import AUXILIARY

log = logging.getLogger(__name__)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a function."""

    code: str
    #: Of the function; None where the fault is the function's own, ``return`` for its result.
    param: str | None
    expected: str
    got: str
    #: What a person needs beside the sentence: a traceback, say.
    detail: str = ""

    def __str__(self) -> str:
        place = f" ({self.param})" if self.param else ""
        return f"{self.code}{place}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True)
class _Wanted:
    """The names, in order, with the types that each may have; None for any."""

    what: str
    parameters: dict[str, tuple[Any, ...] | None]
    returns: tuple[Any, ...]


_DICTS = (dict, typing.Dict, dict[str, Any], typing.Dict[str, Any])  # noqa: UP006 - as people write it
WORKFLOW = _Wanted(
    "workflow", {"task": _DICTS, "model": (TunableChatModel,)}, returns=(float, WorkflowOutput)
)
JUDGE = _Wanted("judge", {"task": _DICTS, "response": None}, returns=(JudgeOutput,))


class InvalidWorkflow(ValueError):
    """The function cannot be trained; ``faults`` says why."""

    def __init__(self, what: str, faults: list[Fault]) -> None:
        super().__init__(f"Invalid {what}: " + "; ".join(map(str, faults)))
        self.faults = faults


def validate_workflow(func: Any, judge: Any = None) -> None:
    """Raise ``ImportError`` without an engine, else ``InvalidWorkflow`` with every fault of the functions."""
    require_engine()
    _raise_faults("workflow", find_faults(func, WORKFLOW))
    if judge is not None:
        _raise_faults("judge", find_faults(judge, JUDGE))


def _raise_faults(what: str, faults: list[Fault]) -> None:
    for fault in faults:
        log.error("%s: %s", what, fault)
    if faults:
        raise InvalidWorkflow(what, faults)


def find_faults(func: Any, wanted: _Wanted) -> list[Fault]:
    """Find every fault of a function; none where it can be used."""
    if not callable(func):
        return [Fault("NOT_CALLABLE", None, "an async function", type(func).__name__)]
    if isinstance(func, functools.partial):
        got = f"functools.partial of {getattr(func.func, '__name__', type(func.func).__name__)}"
        return [Fault("PARTIAL", None, "an async def, which may call the function with what is bound", got)]
    faults = []
    if not _is_async(func):
        faults.append(Fault("NOT_ASYNC", None, "async def", "def"))
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return [*faults, Fault("PARAM_COUNT", None, ", ".join(wanted.parameters), "no readable signature")]
    if AUXILIARY in signature.parameters:  # models that it calls beside the one that is trained
        wanted = replace(wanted, parameters={**wanted.parameters, AUXILIARY: None})
    hints, problem = _read_hints(func)
    if problem is not None:
        faults.append(Fault("UNRESOLVED_HINT", None, "annotations that can be resolved", problem))
    faults += _find_name_faults(signature, wanted)
    faults += _find_type_faults(signature, hints, wanted)
    if (obstacle := _why_not_picklable(func)) is not None:
        faults.append(
            Fault("NOT_PICKLABLE", None, "a function that can be sent to another process", obstacle)
        )
    return faults


def _is_async(func: Callable[..., Any]) -> bool:
    called = getattr(func, "__call__", None)  # noqa: B004 - of an object that is called like a function
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(called)


def _read_hints(func: Callable[..., Any]) -> tuple[dict[str, Any] | None, str | None]:
    target = func if inspect.isroutine(func) else type(func).__call__
    try:
        return typing.get_type_hints(target), None
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        return None, str(error)


def _find_name_faults(signature: inspect.Signature, wanted: _Wanted) -> list[Fault]:
    expected = list(wanted.parameters)
    faults = []
    for parameter in signature.parameters.values():
        if parameter.kind in _VARIABLE:
            faults.append(Fault("VAR_ARGS", parameter.name, ", ".join(expected), str(parameter)))
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            # Sessions hand both over by place.
            faults.append(
                Fault("KEYWORD_ONLY", parameter.name, "a parameter before any *", f"*, {parameter}")
            )
    names = [parameter.name for parameter in signature.parameters.values() if parameter.kind not in _VARIABLE]
    if len(names) != len(expected):
        faults.append(Fault("PARAM_COUNT", None, str(len(expected)), str(len(names))))
    if sorted(names) == sorted(expected):
        if names != expected:
            faults.append(Fault("PARAM_ORDER", None, ", ".join(expected), ", ".join(names)))
        return faults
    for index, name in enumerate(names[: len(expected)]):
        if name not in expected:
            faults.append(Fault("PARAM_NAME", name, expected[index], name))
    return faults


def _find_type_faults(
    signature: inspect.Signature, hints: dict[str, Any] | None, wanted: _Wanted
) -> list[Fault]:
    faults = []
    empty = inspect.Parameter.empty
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.kind in _VARIABLE:
            continue
        # A parameter of another name is held against the one in whose place it stands.
        by_place = list(wanted.parameters)[index] if index < len(wanted.parameters) else None
        types = wanted.parameters.get(parameter.name, wanted.parameters.get(by_place or ""))
        if types is None:
            continue
        if parameter.annotation is empty:
            faults.append(Fault("MISSING_ANNOTATION", parameter.name, _names(types), "none"))
        elif hints is not None and not _is_one_of(hints.get(parameter.name), types):
            got = _name(hints.get(parameter.name))
            faults.append(Fault("PARAM_TYPE", parameter.name, _names(types), got))
    if signature.return_annotation is inspect.Signature.empty:
        faults.append(Fault("MISSING_ANNOTATION", "return", _names(wanted.returns), "none"))
    elif hints is not None and not _is_one_of(hints.get("return"), wanted.returns):
        faults.append(Fault("RETURN_TYPE", "return", _names(wanted.returns), _name(hints.get("return"))))
    return faults


def _is_one_of(hint: Any, types: tuple[Any, ...]) -> bool:
    return any(hint is wanted or hint == wanted for wanted in types)


def _names(types: tuple[Any, ...]) -> str:
    if types == _DICTS:
        return "Dict"
    return " or ".join(_name(one) for one in types)


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)


def _why_not_picklable(func: Any) -> str | None:
    import cloudpickle

    try:
        cloudpickle.dumps(func)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        return str(error).splitlines()[0]
    return None
