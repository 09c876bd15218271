"""`trellis agent`: the pipeline that teaches a model to use tools."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from trellis_cli import agent_evaluate, agent_export, agent_pipeline, agent_search, agent_train
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, err, out, print_json, print_table
from trellis_cli.services.platform import python_command

GENERATOR = "trellis_train.agents.tooluse.data.generate"
EXIT_BAD_REQUEST = 65  # EX_DATAERR, of the generator

#: Further commands register themselves on it in modules of their own, at the end of this one.
app = typer.Typer(no_args_is_help=True)


class DataKind(StrEnum):
    """What can be generated."""

    ALL = "all"
    SFT = "agent_sft"
    TOOLS = "agent_tools"
    BENCHMARK = "agent_benchmark"
    RETRIEVAL = "agent_retrieval"


@app.command()
def generate(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", file_okay=False, help=("Output folder for JSON Lines files and a manifest.")
        ),
    ],
    kind: Annotated[
        DataKind,
        typer.Option(help="What to generate; tools are always included."),
    ] = DataKind.ALL,
    seed: Annotated[int, typer.Option(help="The same seed produces identical files.")] = 42,
    as_json: Json = False,
) -> None:
    """Generate the training and evaluation data: tools, dialogs, benchmark samples and tool queries."""
    started = time.monotonic()
    command = python_command("-m", GENERATOR, str(output), "--kind", kind.value, "--seed", str(seed))
    manifest = _follow(command)
    seconds = round(time.monotonic() - started, 1)
    if as_json:
        print_json({**manifest, "folder": str(output), "seconds": seconds})
        return
    print_table(("file", "rows"), [(name, f"{rows:,}") for name, rows in manifest["rows"].items()])
    out.print(f"in {output}, {seconds} s", markup=False, highlight=False)


def _follow(command: list[str]) -> dict[str, Any]:
    """Run the generator with a bar; the manifest that it prints."""
    with (
        subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process,
        _ended(process),
    ):
        said = _show(process.stderr) if process.stderr else []
        printed = process.stdout.read() if process.stdout else ""
        code = process.wait()
    if code != 0:
        reason = said[-1] if said else f"the generator ended with status {code}"
        raise Problem(reason, exit_code=ExitCode.USAGE if code == EXIT_BAD_REQUEST else ExitCode.FAILED)
    manifest: dict[str, Any] = json.loads(printed)
    return manifest


@contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Kill the process if the block fails, so that nothing runs on after Ctrl-C."""
    try:
        yield
    except BaseException:
        process.kill()
        raise


def _show(stream: IO[str]) -> list[str]:
    """Show progress lines as bars on stderr; the lines that are something else."""
    said: list[str] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        tasks: dict[str, Any] = {}
        for line in stream:
            try:
                told = json.loads(line)
                name, done, total = told["kind"], told["done"], told["total"]
            except (ValueError, TypeError, KeyError):
                said.append(line.strip())
                continue
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)
    return [line for line in said if line]


agent_train.register(app)
agent_evaluate.register(app)
agent_export.register(app)
agent_search.register(app)
agent_pipeline.register(app)
