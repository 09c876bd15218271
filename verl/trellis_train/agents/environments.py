"""Makes environments and tries their tools, each kind by a module of its own.

``python -m trellis_train.agents.environments make KIND FOLDER --parameters JSON [--files JSON]``
``python -m trellis_train.agents.environments call FOLDER TOOL ARGUMENTS``

Both print JSON. Bad input leaves with 65, a line with a code and a sentence on standard error. The manifest
is written last: a folder that has one is whole. A kind's module has ``make(folder, parameters)``, which
returns what ``Made`` holds, and ``call(folder, tool, arguments)``, which answers like the tool does in an
episode.
"""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import ValidationError
from trellis_contracts.agents import EnvironmentManifest, ToolSchema
from trellis_contracts.environments import (
    BAD_REQUEST,
    CODE_PREFIX,
    EXIT_BAD_REQUEST,
    MANIFEST_FILE,
    CallAnswer,
)
from trellis_contracts.hashing import hash_file
from trellis_data.atomic_files import write_atomically
from trellis_recipes.environment_plugins import find_plugins
from trellis_recipes.environments import check_parameters

from trellis_train.agents.surrogates import find_surrogate
from trellis_train.sandbox.output import as_text

#: Names that a refusal lists.
_NAMED_TOOLS = 20


class BadRequest(ValueError):
    """What was asked for cannot be done; the message is for the person who asked, the code for programs."""

    def __init__(self, message: str, code: str = BAD_REQUEST) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Made:
    """What a kind's ``make`` has written."""

    counts: dict[str, int]
    tools: list[ToolSchema]
    #: Files of rows by split, or by ``dataset/split``, relative to the folder.
    datasets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What a tool answers: what the model would have been shown."""

    result: Any
    result_count: int | None = None
    error: str | None = None


class Kind(Protocol):
    """A kind's module, which an entry point names (``trellis_recipes.environment_plugins``)."""

    def make(self, folder: Path, parameters: dict[str, Any]) -> Made:
        """Write the files, the same bytes for the same parameters. Raises ``BadRequest``."""

    def call(self, folder: Path, tool: ToolSchema, arguments: dict[str, Any]) -> Answer:
        """Call a tool that the environment has; what the tool refuses is in the answer."""


def make(
    kind: str, folder: Path, parameters: Mapping[str, Any], files: Mapping[str, str] | None = None
) -> EnvironmentManifest:
    """Make an environment in a folder; its manifest. Raises ``BadRequest``.

    ``files`` says where on this machine what a parameter names is: the manifest keeps the parameter.
    """
    values, issues = check_parameters(kind, parameters)
    if issues:
        raise BadRequest(" ".join(issue.message for issue in issues), issues[0].code)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST_FILE).unlink(missing_ok=True)
    made = _module(kind).make(folder, {**values, **(files or {})})
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = EnvironmentManifest(
        kind=kind,
        parameters=values,
        counts=made.counts,
        tools=made.tools,
        datasets=made.datasets,
        sha256={path.relative_to(folder).as_posix(): hash_file(path) for path in written},
    )
    write_atomically(folder / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")
    return manifest


def call(folder: Path, tool: str, arguments: dict[str, Any]) -> CallAnswer:
    """Try a tool of an environment. Raises ``BadRequest`` where the folder holds none."""
    manifest = read_manifest(folder)
    schema = next((each for each in manifest.tools if each.name == tool), None)
    if schema is None:
        names = ", ".join(each.name for each in manifest.tools[:_NAMED_TOOLS])
        more = f" and {len(manifest.tools) - _NAMED_TOOLS} more" if len(manifest.tools) > _NAMED_TOOLS else ""
        raise BadRequest(f"Unknown tool '{tool[:100]}'. Available tools: {names}{more}.")
    started = time.monotonic()
    answer = _module(manifest.kind).call(folder, schema, arguments)
    return CallAnswer(
        result=_without_surrogates(answer.result),
        result_count=answer.result_count,
        error=answer.error,
        duration_s=time.monotonic() - started,
        ends_episode=schema.ends_episode and answer.error is None,
    )


def _without_surrogates(result: Any) -> Any:
    """Replace lone surrogates in the result: JSON can contain them, but files cannot store them."""
    text = json.dumps(result, ensure_ascii=False)
    return result if find_surrogate(text) is None else json.loads(as_text(text))


def read_manifest(folder: Path) -> EnvironmentManifest:
    """Read the environment's manifest in a folder. Raises ``BadRequest`` if there is no valid one."""
    try:
        return EnvironmentManifest.model_validate_json((folder / MANIFEST_FILE).read_bytes())
    except FileNotFoundError:
        raise BadRequest(f"{folder} is not an environment: {MANIFEST_FILE} is missing.") from None
    except (OSError, ValidationError) as error:
        raise BadRequest(f"The {MANIFEST_FILE} of {folder} cannot be read: {error}") from error


def _module(kind: str) -> Kind:
    plugins = find_plugins().kinds
    if kind not in plugins:
        raise BadRequest(f"Unknown environment kind '{kind[:80]}'. Choose from {', '.join(plugins)}.")
    return cast(Kind, importlib.import_module(plugins[kind].module))


def _parse_object(text: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadRequest(f"{what} are not valid JSON: {error}.") from error
    if not isinstance(found, dict):
        raise BadRequest(f"{what} must be a JSON object.")
    return found


def main(arguments: list[str]) -> int:
    """Make or call; the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.environments")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("kind")
    making.add_argument("folder", type=Path)
    making.add_argument("--parameters", default="{}")
    making.add_argument("--files", default="{}")
    calling = commands.add_parser("call")
    calling.add_argument("folder", type=Path)
    calling.add_argument("tool")
    calling.add_argument("arguments")
    given = parser.parse_args(arguments)
    try:
        if given.command == "make":
            parameters = _parse_object(given.parameters, "The parameters")
            files = _parse_object(given.files, "The files")
            print(make(given.kind, given.folder, parameters, files).model_dump_json())
        else:
            named = _parse_object(given.arguments, "The arguments")
            print(call(given.folder, given.tool, named).model_dump_json())
    except BadRequest as error:
        # The sentence is the last line: messages of pydantic, or what a tool printed, have several.
        print(f"{CODE_PREFIX}{error.code}", " ".join(str(error).split()), sep="\n", file=sys.stderr)
        return EXIT_BAD_REQUEST
    return 0


if __name__ == "__main__":
    # Under its own name, which the kinds' modules know it by: classes of ``__main__`` would be others.
    sys.exit(importlib.import_module("trellis_train.agents.environments").main(sys.argv[1:]))
