"""Makes the data of the agent pipeline: ``python -m trellis_train.agents.tooluse.data.generate FOLDER``.

The same seed gives the same bytes. Without ``--quiet`` each thing done is a line of JSON on stderr.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, get_args

from trellis_contracts.hashing import hash_file
from trellis_data.atomic_files import write_atomically

from trellis_train.agents.tooluse.data.benchmark import make_benchmark
from trellis_train.agents.tooluse.data.dialogs import make_dialogs
from trellis_train.agents.tooluse.data.tool_queries import make_tool_queries
from trellis_train.agents.tooluse.data.tools import Tools, make_tools
from trellis_train.agents.tooluse.data.words import SPLITS

Kind = Literal["agent_tools", "agent_sft", "agent_benchmark", "agent_retrieval"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Rows of each kind, for those who show how far it is.
TOTALS: dict[Kind, int] = {
    "agent_tools": 1200,
    "agent_sft": 5000,
    "agent_benchmark": 1100,
    "agent_retrieval": 6000,
}
TOOLS_FILE, MANIFEST_FILE = "agent_tools.jsonl", "manifest.json"
EXIT_BAD_REQUEST = 65  # EX_DATAERR
_REPORT_EVERY = 250
_Report = Callable[[Kind, int], None]


class OtherSeed(ValueError):
    """The folder holds data of another seed, which would not go with what is made now."""


def main(arguments: list[str]) -> int:
    """Write the folder; the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tooluse.data.generate")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=("all", *KINDS), default="all")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args(arguments)
    kinds = KINDS if given.kind == "all" else (given.kind,)
    try:
        manifest = generate(given.folder, kinds=kinds, seed=given.seed, report=None if given.quiet else _tell)
    except OtherSeed as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_REQUEST
    except OSError as error:
        print(f"could not write the data to {given.folder}: {error}", file=sys.stderr)
        return EXIT_BAD_REQUEST
    print(json.dumps(manifest, indent=2))
    return 0


def generate(
    folder: Path, *, kinds: Iterable[Kind] = KINDS, seed: int, report: _Report | None = None
) -> dict[str, Any]:
    """Write the kinds and the manifest, which holds counts and the hash of each file; the manifest.

    The tools are written with every kind, as all others name them; kinds that the folder holds already stay
    there. ``report`` is told of the rows made so far. Raises ``OtherSeed`` where those are of another seed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted: tuple[Kind, ...] = ("agent_tools", *(kind for kind in kinds if kind != "agent_tools"))
    tools = make_tools(seed)
    files = _read_rows(folder, seed) if set(wanted) != set(KINDS) else {}
    for kind in wanted:
        for name, rows in make_rows(kind, tools, seed, report).items():
            write_lines(folder / name, rows)
            files[name] = len(rows)
    manifest = {
        "seed": seed,
        "rows": files,
        "sha256": {name: hash_file(folder / name) for name in files},
    }
    write_atomically(folder / MANIFEST_FILE, json.dumps(manifest, indent=2) + "\n")
    return manifest


def make_rows(kind: Kind, tools: Tools, seed: int, report: _Report | None) -> dict[str, list[dict[str, Any]]]:
    """Generate the rows of a kind, grouped by their file."""
    if kind == "agent_tools":
        return {TOOLS_FILE: [tool.row for tool in tools.all]}
    make = {
        "agent_sft": make_dialogs,
        "agent_benchmark": make_benchmark,
        "agent_retrieval": make_tool_queries,
    }[kind]
    files: dict[str, list[dict[str, Any]]] = {f"{kind}/{split}.jsonl": [] for split in SPLITS}
    for number, row in enumerate(make(tools, seed=seed), start=1):
        files[f"{kind}/{row['split']}.jsonl"].append(row)
        if report is not None and (number % _REPORT_EVERY == 0 or number == TOTALS[kind]):
            report(kind, number)
    return files


def _read_rows(folder: Path, seed: int) -> dict[str, int]:
    """Read which files the folder holds from before, with their rows."""
    try:
        known = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        rows, found = dict(known["rows"]), known["seed"]
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError) as error:
        raise OtherSeed(
            f"{folder / MANIFEST_FILE} cannot be read; generate all kinds, or use a new folder"
        ) from error
    if found != seed:
        raise OtherSeed(f"{folder} contains data for seed {found}: generate all kinds, or use a new folder")
    return {name: count for name, count in rows.items() if (folder / name).is_file()}


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines; the file appears whole or not at all."""
    write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _tell(kind: Kind, done: int) -> None:
    line = json.dumps({"kind": kind, "done": done, "total": TOTALS[kind]})
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
