"""The environment ``own_tools``: schemas in a JSON file, functions in a Python file or a package."""

import json
import shutil
from pathlib import Path
from typing import Any

from trellis_data.atomic_files import write_atomically
from trellis_recipes.workflows.archive import unpack
from trellis_recipes.workflows.package import REQUIREMENTS_FILE, BadPackage, list_files

from trellis_train.agents.environments import Answer, BadRequest, Made
from trellis_train.agents.own_tools.implementation import CODE_FILE, ToolFailed, call_tool, find_missing
from trellis_train.agents.own_tools.schemas import find_argument_fault, function_name, read_schemas
from trellis_train.sandbox.errors import SandboxUnavailable

CODE_FOLDER, SCHEMAS_FILE = "code", "tools.json"


def make(folder: Path, parameters: dict[str, Any]) -> Made:
    """Copy code and schemas, and look whether each tool has its function.

    ``tools`` and ``code`` are places on this machine; ``code`` is ``tools.py`` alone, or an archive with it.
    """
    tools = read_schemas(Path(parameters["tools"]))
    code = folder / CODE_FOLDER
    _copy_code(Path(parameters["code"]), code)
    try:
        missing = find_missing(code, [function_name(tool.name) for tool in tools])
    except SandboxUnavailable as error:
        raise BadRequest(str(error)) from error
    except ToolFailed as error:
        raise BadRequest(f"The code cannot be used: {error}.") from error
    if missing:
        raise BadRequest(
            f"{CODE_FILE} does not define {', '.join(missing)}: every tool needs a function with its name."
        )
    described = [tool.model_dump(mode="json") for tool in tools]
    write_atomically(folder / SCHEMAS_FILE, json.dumps(described, ensure_ascii=False, indent=2) + "\n")
    return Made(counts={"tools": len(tools), "files": len(list_files(code))}, tools=tools)


def call(folder: Path, tool: str, arguments: dict[str, Any]) -> Answer:
    """As an episode would call it: what the function raises is told to the model."""
    described = next(each for each in read_schemas(folder / SCHEMAS_FILE) if each.name == tool)
    fault = find_argument_fault(described, arguments)
    if fault is not None:
        return Answer(f"Invalid arguments: {fault}", error="BAD_ARGUMENTS")
    try:
        value = json.loads(call_tool(folder / CODE_FOLDER, function_name(tool), arguments))
    except SandboxUnavailable as error:
        raise BadRequest(str(error)) from error
    except ToolFailed as error:
        return Answer(str(error), error=error.code)
    return Answer(value, result_count=len(value) if isinstance(value, list) else None)


def _copy_code(source: Path, target: Path) -> None:
    try:
        if source.suffix == ".py":
            target.mkdir(parents=True)
            shutil.copyfile(source, target / CODE_FILE)
        elif source.is_dir():
            target.mkdir(parents=True)
            for path in list_files(source):
                place = target / path.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        else:
            unpack(source, target)
    except BadPackage as error:
        raise BadRequest(f"The code cannot be used: {error}") from error
    if not (target / CODE_FILE).is_file():
        raise BadRequest(f"The code has no {CODE_FILE} at its top level.")
    if (target / REQUIREMENTS_FILE).is_file():
        raise BadRequest(
            f"Environment tools cannot have a {REQUIREMENTS_FILE}; they use the platform's packages. If your"
            " tools need others, put them into a workflow package."
        )
