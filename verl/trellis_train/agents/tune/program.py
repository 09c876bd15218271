"""A person's workflow as one text for the sandbox: the modules it imports, its own code, and what runs it."""

import ast
import base64
import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_contracts import chat_client, workflow_tools, workflows
from trellis_recipes.workflows.package import ENTRY_FILE, BadPackage, read_package
from trellis_recipes.workflows.source import needs_auxiliary

from trellis_train.agents.tune.requirements import NotInstalled, find_installed
from trellis_train.sandbox.command import FOLDER_INSIDE, NOTHING, Belongings

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
    #: The files of a package, and the packages that were installed for it.
    belongings: Belongings = NOTHING

    @classmethod
    def read(cls, place: str, *, packages: str | None = None) -> "WorkflowSource":
        """Read ``file.py``, ``file.py:function``, ``file.pkl`` or a folder; raises ``WorkflowUnusable``.

        ``packages`` is the folder in which requirements were installed; by default this machine's cache.
        """
        path, _, function = place.partition(":")
        if Path(path).is_dir():
            return cls._read_folder(Path(path).resolve(), function or None, packages)
        try:
            code = Path(path).read_bytes()
        except OSError as error:
            raise WorkflowUnusable(f"The workflow file '{path}' cannot be read: {error.strerror}.") from error
        if path.endswith(PICKLE_SUFFIX):
            return cls(Path(path).name, code, DEFAULT_FUNCTION, is_pickle=True)
        return cls(Path(path).name, code, function or find_function(code, Path(path).name), is_pickle=False)

    @classmethod
    def _read_folder(cls, folder: Path, function: str | None, packages: str | None) -> "WorkflowSource":
        try:
            found = read_package(folder, function)
            installed = find_installed(found.requirements, Path(packages) if packages else None)
        except BadPackage as error:
            raise WorkflowUnusable(f"The workflow package '{folder}' cannot be used: {error}") from None
        except NotInstalled as error:
            raise WorkflowUnusable(str(error)) from None
        belongings = Belongings(folder, installed)
        code = found.code.encode()
        return cls(folder.name, code, found.function, is_pickle=False, belongings=belongings)

    @property
    def folder(self) -> Path | None:
        """Of a package."""
        return self.belongings.folder

    @property
    def needs_auxiliary(self) -> bool:
        """Whether sessions need other models; of a pickle nobody knows before it is loaded."""
        return not self.is_pickle and needs_auxiliary(self.code.decode("utf-8", "replace"), self.function)

    def build_program(self, constants: Mapping[str, Any] | None = None) -> bytes:
        """Build the program that the sandbox executes; ``constants`` set what else a session may use."""
        is_package = self.folder is not None
        lines = [
            Path(__file__).with_name("inside.py").read_text(),
            f"MODULES = {_read_modules()!r}",
            f"CODE = {base64.b64encode(self.code).decode()!r}",
            f"IS_PICKLE = {self.is_pickle!r}",
            f"FUNCTION = {self.function!r}",
            f"WORKFLOW_FILE = {f'{FOLDER_INSIDE}/{ENTRY_FILE}' if is_package else self.name!r}",
            f"FOLDER = {FOLDER_INSIDE if is_package else ''!r}",
            *(f"{name} = {value!r}" for name, value in (constants or {}).items()),
            "start()",
        ]
        return "\n".join(lines).encode()

    @property
    def sha256(self) -> str:
        """Of the code."""
        return hashlib.sha256(self.code).hexdigest()


def _read_modules() -> dict[str, str]:
    """Read the sources of the modules that workflows import, in load order."""
    return {
        each.__name__: Path(str(each.__file__)).read_text()
        for each in (workflows, chat_client, workflow_tools)
    }


def find_function(code: bytes, name: str) -> str:
    """Find the workflow in a file: ``workflow``, else the only async function other than ``judge``."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise WorkflowUnusable(
            f"The workflow file '{name}' is not valid Python: line {error.lineno}: {error.msg}."
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
            f"The workflow file '{name}' has {len(found)} async functions: name one of them 'workflow', "
            "or choose one with file.py:function."
        )
    return found[0]


def write_pickle(path: Path, workflow: Callable[..., Any], judge: Callable[..., Any] | None) -> None:
    """Pickle the functions and what they use from their own modules, for ``WorkflowSource.read``."""
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
