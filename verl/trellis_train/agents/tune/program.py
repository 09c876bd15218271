"""A person's workflow as one text for the sandbox: the modules it imports, its own code, and what runs it."""

import ast
import base64
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts import chat_client, workflows

DEFAULT_FUNCTION = "workflow"
PICKLE_SUFFIX = ".pkl"


class WorkflowUnusable(RuntimeError):
    """The file holds no workflow that could run."""


@dataclass(frozen=True)
class WorkflowSource:
    """Where a workflow comes from, read once."""

    name: str
    code: bytes
    #: Of a Python file; a pickle holds the functions themselves.
    function: str
    is_pickle: bool

    @classmethod
    def read(cls, place: str) -> "WorkflowSource":
        """``file.py``, ``file.py:function`` or ``file.pkl``; ``WorkflowUnusable`` where it cannot be."""
        path, _, function = place.partition(":")
        try:
            code = Path(path).read_bytes()
        except OSError as error:
            raise WorkflowUnusable(f"The workflow file '{path}' cannot be read: {error.strerror}.") from error
        if path.endswith(PICKLE_SUFFIX):
            return cls(Path(path).name, code, DEFAULT_FUNCTION, is_pickle=True)
        return cls(Path(path).name, code, function or find_function(code, Path(path).name), is_pickle=False)

    @property
    def program(self) -> bytes:
        """What the sandbox executes."""
        lines = [
            Path(__file__).with_name("inside.py").read_text(),
            f"MODULES = {_read_modules()!r}",
            f"CODE = {base64.b64encode(self.code).decode()!r}",
            f"IS_PICKLE = {self.is_pickle!r}",
            f"FUNCTION = {self.function!r}",
            f"WORKFLOW_FILE = {self.name!r}",
            "start()",
        ]
        return "\n".join(lines).encode()

    @property
    def sha256(self) -> str:
        """Of the code."""
        return hashlib.sha256(self.code).hexdigest()


def _read_modules() -> dict[str, str]:
    """The sources of what a workflow is written against, in the order in which they load."""
    return {each.__name__: Path(str(each.__file__)).read_text() for each in (workflows, chat_client)}


def find_function(code: bytes, name: str) -> str:
    """The workflow among a file's functions: ``workflow``, else the only async one beside ``judge``."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise WorkflowUnusable(
            f"The workflow file '{name}' is no Python: line {error.lineno}: {error.msg}."
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise WorkflowUnusable(f"The workflow file '{name}' cannot be parsed ({error}).") from None
    found = [
        node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name != "judge"
    ]
    if DEFAULT_FUNCTION in found:
        return DEFAULT_FUNCTION
    if len(found) != 1:
        raise WorkflowUnusable(
            f"The workflow file '{name}' has {len(found)} async functions: name one 'workflow', "
            "or say which with file.py:function."
        )
    return found[0]


def write_pickle(path: Path, workflow: Callable[..., Any], judge: Callable[..., Any] | None) -> None:
    """The functions with all that they refer to in their own modules, for ``WorkflowSource.read``."""
    import cloudpickle

    modules = {inspect.getmodule(function) for function in (workflow, judge) if function is not None}
    ours = {module for module in modules if module is not None and module.__name__ != "__main__"}
    for module in ours:  # the sandbox has packages, not the person's files
        cloudpickle.register_pickle_by_value(module)
    try:
        path.write_bytes(cloudpickle.dumps({"workflow": workflow, "judge": judge}))
    finally:
        for module in ours:
            cloudpickle.unregister_pickle_by_value(module)
