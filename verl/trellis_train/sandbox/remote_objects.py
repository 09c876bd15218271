"""Statements that test a program from another process: what the program made stays where it is.

The tests have stand-ins for the program's functions, classes and objects. Values of built-in types cross
as plain data (``plain_data``), everything else as a number that only the program's process can resolve.
A value that the tests expect never crosses: comparisons and sums of a stand-in with a plain value are made
here, where they fail, and operators are asked of the program between two objects of its own alone.
"""

import ast
import builtins
import importlib
import json
import operator
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from trellis_train.sandbox.plain_data import NotPlain, dump, load
from trellis_train.sandbox.remote_calls import (
    TEST_FILE,
    CallFailed,
    Exchange,
    FunctionGone,
    Namespace,
    explain,
)

#: Between two objects of the program. ``operator`` has them under these names.
_BINARY = ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "matmul")
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, *arguments, **options: function(*arguments, **options),
    "attribute": getattr,
    "set_attribute": setattr,
    "item": operator.getitem,
    "set_item": operator.setitem,
    "length": len,
    "iterate": iter,
    "next": next,
    "text": str,
    "representation": repr,
    "truth": bool,
    "is_instance": isinstance,
    **{name: getattr(operator, name) for name in _BINARY},
}


class UnfitTest(BaseException):
    """The tests themselves do what cannot be done from another process; no fault of the program."""


class Objects:
    """In the program's process: its names, and what it has handed out."""

    def __init__(self, names: Namespace, exchange: Exchange) -> None:
        self._names, self._exchange = names, exchange
        self._kept: list[Any] = []

    def answer(self, message: str) -> str:
        """Carry out an operation; what it gave."""
        request = json.loads(message)
        if request["operation"] == "begin":
            self._kept.clear()
            return json.dumps({"value": dump([name for name in request["names"] if name in self._names])})
        arguments, options = load(request["arguments"], resolve=self._resolve)
        if request["operation"] == "name":
            return json.dumps({"value": dump(self._names[arguments[0]], refer=self._keep)})
        given = _by_place(arguments, options)
        before = {name: self._dump_mutable(value) for name, value in given.items()}
        value = _OPERATIONS[request["operation"]](*arguments, **options)
        after = {name: self._dump_mutable(given[name]) for name, text in before.items() if text is not None}
        changed = [[name, text] for name, text in after.items() if text != before[name]]
        return json.dumps({"value": dump(value, refer=self._keep), "changed": changed})

    def _dump_mutable(self, value: Any) -> str | None:
        """Serialize a value that the function may change in place, so that the tests see the change."""
        is_mutable = isinstance(value, list | dict | set | bytearray)
        return dump(value, refer=self._keep) if is_mutable else None

    def _keep(self, value: Any) -> dict[str, int]:
        for number, kept in enumerate(self._kept):
            if kept is value:
                return {"object": number}
        self._kept.append(value)
        return {"object": len(self._kept) - 1}

    def _resolve(self, kind: str, number: int) -> Any:
        if kind == "object":
            return self._kept[number]

        def call_back(*arguments: Any) -> Any:
            text = dump((arguments, {}), refer=self._keep)
            message = json.dumps({"callback": number, "arguments": text})
            reply = json.loads(self._exchange({"message": message})["message"])
            if "failed" in reply:
                raise RuntimeError(reply["failed"])
            return load(reply["returned"], resolve=self._resolve)

        return call_back


class _Program:
    """In the tests' process: the program, as far as it can be asked."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._callables: list[Callable[..., Any]] = []

    def list_names(self, asked: list[str]) -> list[str]:
        """List which of these names the program has."""
        reply = self._send({"operation": "begin", "names": asked})
        found = load(str(reply.get("value")))
        return [name for name in asked if isinstance(found, list) and name in found]

    def ask(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Run an operation in the program and return its result; errors raised there are raised here."""
        try:
            text = dump((arguments, options), refer=self._refer)
        except NotPlain as error:
            raise UnfitTest(
                f"the tests pass the program a value that cannot be sent to it: {error}"
            ) from None
        reply = self._send({"operation": operation, "arguments": text})
        while "callback" in reply:
            reply = self._send(self._call_back(reply))
        given = _by_place(arguments, options)
        for name, changed in reply.get("changed") or ():
            _change(given.get(name), load(changed, resolve=self._resolve))
        return load(str(reply.get("value")), resolve=self._resolve)

    def _send(self, request: Namespace) -> Namespace:
        reply = self._exchange({"message": json.dumps(request)})
        if "gone" in reply:
            raise FunctionGone(reply["gone"])
        if "raised" in reply:
            raise _as_builtin_error(reply["raised"])
        try:
            answer = json.loads(reply["message"])
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise FunctionGone("it wrote invalid data to the result pipe")
        return answer

    def _call_back(self, reply: Namespace) -> Namespace:
        """Call a function of the tests that the program was given."""
        number = reply["callback"]
        if not isinstance(number, int) or not 0 <= number < len(self._callables):
            raise FunctionGone("it called a function that it was not passed")
        arguments, _ = load(str(reply.get("arguments")), resolve=self._resolve)
        try:
            value = self._callables[number](*arguments)
            return {"returned": dump(value, refer=self._refer)}
        except Exception as error:  # noqa: BLE001 - the program deals with what it called
            return {"failed": f"{type(error).__name__}: {error}"[:300]}

    def _refer(self, value: Any) -> dict[str, int]:
        if isinstance(value, StandIn):
            return {"object": value._StandIn__number}
        if callable(value) and not isinstance(value, type):
            self._callables.append(value)
            return {"callable": len(self._callables) - 1}
        raise NotPlain(f"values of type {type(value).__name__} are not supported (plain data only)")

    def _resolve(self, kind: str, number: Any) -> Any:
        if kind != "object" or not isinstance(number, int):
            raise NotPlain("not plain data (an unknown kind)")
        return StandIn(self, number)


class StandIn:
    """An object in the program's process. What it says about itself is the program's word for it."""

    __slots__ = ("__number", "__program")

    def __init__(self, program: _Program, number: int) -> None:
        object.__setattr__(self, "_StandIn__program", program)
        object.__setattr__(self, "_StandIn__number", number)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__program.ask("call", self, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__program.ask("attribute", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__program.ask("set_attribute", self, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self.__program.ask("item", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__program.ask("set_item", self, key, value)

    def __len__(self) -> int:
        return int(self.__program.ask("length", self))

    def __iter__(self) -> Iterator[Any]:
        iterator = self.__program.ask("iterate", self)
        return iterator if isinstance(iterator, StandIn) else iter(iterator)

    def __next__(self) -> Any:
        return self.__program.ask("next", self)

    def __str__(self) -> str:
        return str(self.__program.ask("text", self))

    def __repr__(self) -> str:
        return str(self.__program.ask("representation", self))

    def __bool__(self) -> bool:
        return bool(self.__program.ask("truth", self))

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, StandIn) and self.__program.ask("is_instance", value, self) is True

    def __hash__(self) -> int:
        return self.__number

    def _between(self, name: str, other: Any) -> Any:
        """Apply an operator to two of the program's objects; ``NotImplemented`` for a plain value."""
        return self.__program.ask(name, self, other) if isinstance(other, StandIn) else NotImplemented


def _add_operators() -> None:
    for name in _BINARY:
        setattr(StandIn, f"__{name}__", lambda self, other, name=name: self._between(name, other))


_add_operators()


def run_statements(request: Namespace, exchange: Exchange) -> Namespace:
    """Execute statements in the tests' process; ``passed``, and ``unfit`` if they cannot be executed."""
    random.seed(0)
    program = _Program(exchange)
    names: Namespace = {"__name__": "tests"}
    try:
        tree = ast.parse(request["statements"])
        own, modules = _find_names(tree)
        for name in modules:
            names[name] = importlib.import_module("numpy" if name == "np" else name)
        for name in program.list_names(own):
            names[name] = program.ask("name", name)
        exec(compile(tree, TEST_FILE, "exec"), names)  # noqa: S102 - what this process is for
    except UnfitTest as error:
        return {"unfit": str(error)}
    except (Exception, FunctionGone) as error:  # noqa: BLE001 - whatever a test raises, it has not passed
        return {"passed": False, "problem": explain(error, request["statements"])}
    return {"passed": True}


def _find_names(tree: ast.Module) -> tuple[list[str], list[str]]:
    """Find names of the tests that the program must define, and modules that were not imported.

    A built-in function stays what it is, or the program could judge itself (``abs(f(2) - 4) < 0.1``),
    unless it is all that the tests speak of. So does a module of the standard library, or NumPy.
    """
    bound: set[str] = set()
    loaded: dict[str, bool] = {}  # name → whether it is used for its attributes alone
    of_attributes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loaded[node.id] = loaded.get(node.id, True) and id(node) in of_attributes
        elif isinstance(node, ast.Name):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
    free = [name for name in loaded if name not in bound]
    modules = [name for name in free if loaded[name] and name in {*sys.stdlib_module_names, "numpy", "np"}]
    others = [name for name in free if name not in modules]
    own = [name for name in others if not hasattr(builtins, name)]
    return own or others, modules


def _by_place(arguments: Any, options: Any) -> dict[int | str, Any]:
    """Return arguments by their position or name."""
    return {**dict(enumerate(arguments)), **options}


def _change(value: Any, changed: Any) -> None:
    """Make a value of the tests what the program has made of its copy."""
    if isinstance(value, list | bytearray):
        value[:] = changed
    elif isinstance(value, dict | set):
        value.clear()
        value.update(changed)


def _as_builtin_error(message: str) -> Exception:
    """Return an error that tests can catch by its built-in type, if it has one."""
    kind = getattr(builtins, message.partition(":")[0].partition(" ")[0], None)
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        return CallFailed(message)
    try:
        made: Exception = type(kind.__name__, (CallFailed, kind), {})(message)
    except TypeError:  # those of Unicode want more than a message
        return CallFailed(message)
    return made
