"""`trellis datasets download`: the rows of a split as a file."""

import os
import sys
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer
from rich.progress import DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err, out, size
from trellis_cli.resolve_by_name import find_dataset


def download(
    dataset: Annotated[str, typer.Argument(help="ID (ds_...) or name.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file, - for stdout; default: NAME.FORM.")
    ] = None,
    version: Annotated[str | None, typer.Option(help="Version, branch or tag; default: main.")] = None,
    split: Annotated[str | None, typer.Option(help="Split; default: train, or the only one.")] = None,
    form: Annotated[Literal["jsonl", "csv", "parquet"], typer.Option(help="File format.")] = "jsonl",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Download all rows of a split to a file, written atomically.

    trellis datasets download chats --version v1 --form parquet -o chats.parquet
    """
    client = connect()
    found = find_dataset(client, dataset)
    wanted = {"version": version, "split": split, "form": form}
    if str(output) == "-":
        _fetch(client, found, wanted, sys.stdout.buffer)
        return
    target = output or Path(f"{_plain_name(client, found)}.{form}")
    if target.exists() and not force:
        raise Problem(f"{target} already exists", hint="--force overwrites it", exit_code=ExitCode.USAGE)
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        with unfinished.open("wb") as handle:
            _fetch(client, found, wanted, handle)
        os.replace(unfinished, target)
    except OSError as error:
        raise Problem(f"{target} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    out.print(f"{target}  {size(target.stat().st_size)}", markup=False, highlight=False, soft_wrap=True)


def _fetch(client: ApiClient, dataset: str, wanted: dict[str, str | None], handle: BinaryIO) -> None:
    columns = (TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn())
    with (
        Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as bar,
        client.stream(f"/datasets/{dataset}/download", **wanted) as pieces,
    ):
        task = bar.add_task("downloading", total=None)
        for piece in pieces:
            handle.write(piece)
            bar.advance(task, len(piece))


def _plain_name(client: ApiClient, dataset: str) -> str:
    """Return the dataset's name in a form that is safe as a file name."""
    name = str(client.get(f"/datasets/{dataset}")["name"])
    return name.replace("/", "-").replace("\0", "").lstrip(".") or dataset
