"""The two ends of a test: the process that has the function, and the one that has the tests of it.

Both run isolated and apart. The tests call a stand-in, whose arguments and results cross as plain data
(``plain_data``); the process between them (``function_tests``) hands on texts that it does not read.
"""

import random
from collections.abc import Callable
from typing import Any

from trellis_train.sandbox.plain_data import dump, load

TEST_FILE = "<test>"
Namespace = dict[str, Any]
#: Sends a reply and returns the next request.
Exchange = Callable[[Namespace], Namespace]
_SHOWN = 300


class CallFailed(Exception):
    """The function raised, or gave something that is no plain data. Tests may expect it."""


class FunctionGone(BaseException):
    """There is no function to call any more; tests cannot catch that by mistake."""


def call_function(names: Namespace, request: Namespace) -> Namespace:
    """Call the function, in its own process."""
    function = names.get(request["function"])
    if not callable(function):
        raise NameError(f"the code does not define the function {request['function']}")
    arguments, options = load(request["arguments"])
    return {"value": dump(function(*arguments, **options))}


def run_checks(request: Namespace, exchange: Exchange) -> Namespace:
    """Execute the code before the function, then ``check(stand-in)``, in the tests' process.

    The names of the code before it (functions that tests use) are there, and the function's own name
    stands for the stand-in, as tests of HumanEval compare with it.
    """

    def stand_in(*arguments: Any, **options: Any) -> Any:
        reply = exchange({"arguments": dump((arguments, options))})
        if "gone" in reply:
            raise FunctionGone(reply["gone"])
        if "raised" in reply:
            raise CallFailed(reply["raised"])
        return load(reply["value"])

    random.seed(0)
    names: Namespace = {"__name__": "tests"}
    try:
        exec(compile(request["before"], "<before>", "exec"), names)  # noqa: S102 - what this process is for
        names[request["function"]] = stand_in
        exec(compile(request["test"], TEST_FILE, "exec"), names)  # noqa: S102
        names["check"](stand_in)
    except (Exception, FunctionGone) as error:  # noqa: BLE001 - whatever a test raises, it has not passed
        return {"passed": False, "problem": explain(error, request["test"])}
    return {"passed": True}


def explain(error: BaseException, test: str) -> str:
    """Describe the failed line of the test and what was raised there."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == TEST_FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    lines = test.splitlines()
    place = lines[line - 1].strip()[:_SHOWN] if 0 < line <= len(lines) else ""
    message = str(error)[:_SHOWN]
    if isinstance(error, AssertionError):
        return f"it fails: {place}" + (f" ({message})" if message else "")
    name = "" if isinstance(error, CallFailed | FunctionGone) else f"{type(error).__name__}: "
    return f"{name}{message}" + (f" (at: {place})" if place else "")
