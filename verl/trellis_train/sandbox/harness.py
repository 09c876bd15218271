"""The process that executes strangers' code, isolated: limits first, then the code, then call by call.

``python -I -S harness.py <mode> <limits> <packages> [<requests fd> <answers fd>]``; ``score`` answers
calls of the function ``score``, ``function`` calls any function with plain data, ``objects`` does what
tests of another process ask of the code, ``checks`` executes tests of another process's code, ``program``
runs the code as a program on its standard input. Imports nothing of ours but the ends of remote calls.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any

#: Of the few modules of ours that lie inside (``command``).
OURS = "/sandbox"
CODE = "/sandbox/code.py"
MAX_MESSAGE = 500
Namespace = dict[str, Any]


def main(arguments: list[str]) -> None:
    """Execute the code in the mode that the arguments name."""
    mode, limits, packages = arguments[0], json.loads(arguments[1]), json.loads(arguments[2])
    apply_limits(limits)
    sys.path.extend(packages)
    sys.argv = [CODE]
    if mode == "program":
        execute("__main__")
        return
    requests_fd, answers_fd = int(arguments[3]), int(arguments[4])
    # What the code reads and prints has nothing to do with the calls.
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    serve(mode, requests_fd, answers_fd)


def apply_limits(limits: dict[str, Any]) -> None:
    """Set limits that the code cannot raise again."""
    for kind, value in (
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_FSIZE, limits["disk_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def execute(name: str) -> Namespace:
    """Execute the code as a module; its names."""
    with open(CODE, "rb") as file:
        code = compile(file.read(), CODE, "exec", dont_inherit=True)
    module = type(sys)(name)
    module.__file__ = CODE
    sys.modules[name] = module
    exec(code, module.__dict__)  # noqa: S102 - what this process is for
    return module.__dict__


def serve(mode: str, requests_fd: int, answers_fd: int) -> None:
    """Say when loading begins and whether it went well, then answer one line for each line asked."""
    answer(answers_fd, {"id": 0})  # from here on it is the code's own time
    try:
        if mode in ("function", "objects", "checks"):
            prepare_remote_calls()
        names = execute("user_code")
        if mode == "score" and not callable(names.get("score")):
            raise TypeError("the file has no function score(prompt, response, answer, row)")
    except BaseException as error:  # noqa: BLE001 - sys.exit() included: the code must not choose the end
        answer(answers_fd, {"id": 0, "error": describe(error)})
        return
    answer(answers_fd, {"id": 0})
    with os.fdopen(requests_fd, "rb") as requests:
        conversation = Conversation(requests, answers_fd)
        handle = make_handler(mode, names, conversation)
        while (request := conversation.receive()) is not None:
            try:
                reply = handle(request)
            except BaseException as error:  # noqa: BLE001 - as above
                reply = {"error": describe(error)}
            conversation.reply(reply)


class Conversation:
    """Requests and the replies to them, in turns; a reply bears the number of the last request."""

    def __init__(self, requests: Iterator[bytes], answers_fd: int) -> None:
        self._requests, self._answers_fd = requests, answers_fd
        self._last = 0

    def receive(self) -> Namespace | None:
        """Return the next request, or None if there are no more."""
        line = next(self._requests, None)
        if line is None:
            return None
        request: Namespace = json.loads(line)
        self._last = request["id"]
        return request

    def reply(self, reply: Namespace) -> None:
        """Answer the last request."""
        answer(self._answers_fd, {**reply, "id": self._last})

    def exchange(self, reply: Namespace) -> Namespace:
        """Answer the last request with a question; what comes back."""
        self.reply(reply)
        request = self.receive()
        if request is None:
            raise SystemExit("nobody asks any more")
        return request


def make_handler(mode: str, names: Namespace, conversation: Conversation) -> Callable[[Namespace], Namespace]:
    """Return the function that answers the requests of a mode."""
    if mode == "score":
        return lambda request: call_score(names, request)
    from trellis_train.sandbox import remote_calls, remote_objects

    if mode == "function":
        return lambda request: remote_calls.call_function(names, request)
    if mode == "objects":
        objects = remote_objects.Objects(names, conversation.exchange)
        return lambda request: {"message": objects.answer(request["message"])}
    return lambda request: (
        remote_objects.run_statements(request, conversation.exchange)
        if "statements" in request
        else remote_calls.run_checks(request, conversation.exchange)
    )


def prepare_remote_calls() -> None:
    """Import our side before the code can, and let chance fall alike in every run."""
    import random

    sys.path.append(OURS)
    from trellis_train.sandbox import remote_calls, remote_objects  # noqa: F401

    sys.path.remove(OURS)
    random.seed(0)
    # What was printed is shown, also of a process that is killed when its tests are through.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def call_score(names: Namespace, request: Namespace) -> Namespace:
    """Call the score function and return its value, a number or numbers by name."""
    value = names["score"](request["prompt"], request["response"], request["answer"], request["row"])
    if isinstance(value, dict):
        return {"value": {str(name): as_number(part) for name, part in value.items()}}
    return {"value": as_number(value)}


def as_number(value: Any) -> float:
    """Convert a number or number-like scalar to a float; texts are refused."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"score returned {type(value).__name__}, not a number")
    return float(value)


def describe(error: BaseException) -> str:
    """Format the error as one line, with the line of the code where it was raised."""
    told = getattr(error, "told", None)
    if isinstance(told, str):  # by code that executes other code, and knows its lines
        return told[:MAX_MESSAGE].replace("\n", " ")
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == CODE:
            place = f" (line {trace.tb_lineno})"
        trace = trace.tb_next
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 - the error's own code may fail too
        message = "(the error has no readable message)"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text[:MAX_MESSAGE].replace("\n", " ") + place


def answer(descriptor: int, reply: Namespace) -> None:
    """Write one line."""
    data = json.dumps(reply).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main(sys.argv[1:])
