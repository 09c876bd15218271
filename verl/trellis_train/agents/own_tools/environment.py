"""The environment ``own_tools``: schemas, and functions in a Python file or a package, or recorded results.

Dialogs and a benchmark make it a toolbox to train in: its rows are datasets of the same names.
"""

import json
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema
from trellis_data.atomic_files import write_atomically
from trellis_data.json_objects import read_objects
from trellis_recipes.workflows.archive import unpack
from trellis_recipes.workflows.package import REQUIREMENTS_FILE, BadPackage, list_files

from trellis_train.agents.argument_check import find_argument_fault
from trellis_train.agents.environments import Answer, BadRequest, Made
from trellis_train.agents.own_tools.implementation import (
    CODE_FILE,
    ToolFailed,
    call_tool,
    find_missing,
    forget,
)
from trellis_train.agents.own_tools.schemas import (
    INVALID,
    find_shared_function,
    function_name,
    read_schemas,
)
from trellis_train.agents.own_tools.simulator import Simulator, read_recordings
from trellis_train.agents.own_tools.tool_rows import OwnRows
from trellis_train.agents.tooluse.formatting.training_rows import preference_rows
from trellis_train.sandbox.errors import SandboxUnavailable

CODE_FOLDER, SCHEMAS_FILE, SIMULATOR_FILE, ROWS_FOLDER = "code", "tools.json", "simulator.jsonl", "rows"
CODE_INVALID = "tools_code_invalid"


def make(folder: Path, parameters: dict[str, Any]) -> Made:
    """Copy what answers calls, and write the rows that trainers read.

    ``tools`` and the others are places on this machine. ``code`` is ``tools.py`` alone or an archive with it;
    in its place stands ``simulator``, recorded results. ``dialogs`` and ``benchmark`` may be missing.
    """
    _clear(folder)
    tools = read_schemas(Path(parameters["tools"]))
    counts = {"tools": len(tools)}
    if simulator := parameters.get("simulator"):
        recordings = read_recordings(Path(simulator), tools)
        counts["recorded_results"] = len(recordings)
        _write(folder / SIMULATOR_FILE, recordings)
    else:
        counts["files"] = _take_code(Path(parameters["code"]), folder / CODE_FOLDER, tools)
    described = [tool.model_dump(mode="json") for tool in tools]
    write_atomically(folder / SCHEMAS_FILE, json.dumps(described, ensure_ascii=False, indent=2) + "\n")
    datasets = _write_rows(folder, parameters, tools, counts)
    return Made(counts=counts, tools=tools, datasets=datasets)


def call(folder: Path, tool: ToolSchema, arguments: dict[str, Any]) -> Answer:
    """Call a tool as an episode would: the model is told what the function raises."""
    fault = find_argument_fault(tool.parameters, arguments)
    if fault is not None:
        return Answer(f"Invalid arguments: {fault}", error="BAD_ARGUMENTS")
    if (recorded := folder / SIMULATOR_FILE).is_file():
        return _simulator(recorded, recorded.stat().st_mtime_ns).call(tool.name, arguments)
    try:
        value = json.loads(call_tool(folder / CODE_FOLDER, function_name(tool.name), arguments))
    except SandboxUnavailable as error:
        raise BadRequest(str(error)) from error
    except ToolFailed as error:
        return Answer(str(error), error=error.code)
    return Answer(value, result_count=len(value) if isinstance(value, list) else None)


@lru_cache(maxsize=8)
def _simulator(path: Path, changed: int) -> Simulator:
    """Load the recordings once, not for every call; ``changed`` is the file's modification time."""
    del changed
    return Simulator(read_objects(path))


def _clear(folder: Path) -> None:
    """Remove what was made here before: rows and results of other tools would be taken for these."""
    forget(folder / CODE_FOLDER)
    for name in (CODE_FOLDER, ROWS_FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (SCHEMAS_FILE, SIMULATOR_FILE):
        (folder / name).unlink(missing_ok=True)


def _take_code(source: Path, target: Path, tools: list[ToolSchema]) -> int:
    """Copy the code and look whether each tool has its function; the number of files."""
    if shared := find_shared_function(tools):
        raise BadRequest(shared, INVALID)
    _copy_code(source, target)
    try:
        missing = find_missing(target, [function_name(tool.name) for tool in tools])
    except SandboxUnavailable as error:
        raise BadRequest(str(error)) from error
    except ToolFailed as error:
        raise BadRequest(f"The code cannot be used: {error}.", CODE_INVALID) from error
    if missing:
        raise BadRequest(
            f"{CODE_FILE} does not define {', '.join(missing)}: every tool needs a function with its name.",
            CODE_INVALID,
        )
    return len(list_files(target))


def _write_rows(
    folder: Path, parameters: dict[str, Any], tools: list[ToolSchema], counts: dict[str, int]
) -> dict[str, str]:
    """Write files of rows by dataset and split, named as in the kind ``toolbox``; adds to ``counts``."""
    own, made = OwnRows(tools), dict[str, list[dict[str, Any]]]()
    dialogs, benchmark = dict[str, list[dict[str, Any]]](), dict[str, list[dict[str, Any]]]()
    if given := parameters.get("dialogs"):
        dialogs = own.read_dialogs(Path(given))
        counts["dialogs"] = sum(map(len, dialogs.values()))
        made |= {f"sft/{split}": rows for split, rows in dialogs.items()}
    if given := parameters.get("benchmark"):
        benchmark = own.read_benchmark(Path(given))
        counts["benchmark"] = sum(map(len, benchmark.values()))
        made |= benchmark
        pairs = {split: list(preference_rows(rows, seed=0)) for split, rows in benchmark.items()}
        if pairs["train"]:
            counts["pairs"] = sum(map(len, pairs.values()))
            made |= {f"preference/{split}": rows for split, rows in pairs.items() if rows}
    if queries := own.make_queries(dialogs, benchmark):
        counts["tool_queries"] = sum(map(len, queries.values()))
        made |= {f"retrieval/{split}": rows for split, rows in queries.items()}
    files = {name: f"{ROWS_FOLDER}/{name if '/' in name else f'rl/{name}'}.jsonl" for name in made}
    for name, rows in made.items():
        _write(folder / files[name], rows)
    return files


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _copy_code(source: Path, target: Path) -> None:
    try:
        if source.suffix == ".py":
            target.mkdir(parents=True)
            shutil.copyfile(source, target / CODE_FILE)
        else:
            unpack(source, target)
    except BadPackage as error:
        raise BadRequest(f"The code cannot be used: {error}", CODE_INVALID) from error
    if not (target / CODE_FILE).is_file():
        raise BadRequest(f"The code has no {CODE_FILE} at its top level.", CODE_INVALID)
    if (target / REQUIREMENTS_FILE).is_file():
        raise BadRequest(
            f"Environment tools cannot have a {REQUIREMENTS_FILE}; they use the platform's packages. If your"
            " tools need others, put them into a workflow package.",
            CODE_INVALID,
        )
