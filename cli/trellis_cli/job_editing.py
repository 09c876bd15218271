"""`trellis jobs edit`: name, notes, tags, star and priority, of one job or of several."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from trellis_cli.client import connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, out, print_json
from trellis_cli.resolve_by_name import find_job


def register(app: typer.Typer) -> None:
    """Add the command to those of jobs."""
    app.command()(edit)


def edit(
    jobs: Annotated[list[str], typer.Argument(help="IDs (job_...) or unique names.")],
    name: Annotated[str | None, typer.Option(help="New name; only with a single job.")] = None,
    notes: Annotated[
        str | None, typer.Option(help=("Notes in Markdown; an empty string removes them."))
    ] = None,
    notes_file: Annotated[Path | None, typer.Option(help="Read notes from a file; - for stdin.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Add a tag; repeatable.")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Remove a tag; repeatable.")] = None,
    star: Annotated[bool | None, typer.Option("--star/--no-star", help="Star or unstar.")] = None,
    priority: Annotated[
        int | None, typer.Option(min=-100, max=100, help="Priority of a queued job; higher runs first.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rename, annotate, tag or star jobs."""
    changes = _collect(name, notes, notes_file, tag, untag, star, priority)
    if name is not None and len(jobs) > 1:
        raise Problem("--name works with a single job, but several were given", exit_code=ExitCode.USAGE)
    client = connect()
    ids = [find_job(client, each, must_be_one=True) for each in jobs]
    edited = [client.request("PATCH", f"/jobs/{each}", json=changes) for each in ids]
    if as_json:
        print_json(edited if len(edited) > 1 else edited[0])
        return
    for job in edited:
        star_mark = "★ " if job["is_starred"] else ""
        out.print(f"{job['id']}  {star_mark}{job['name']}  {' '.join(job['tags'])}", markup=False)


def _collect(
    name: str | None,
    notes: str | None,
    notes_file: Path | None,
    tag: list[str] | None,
    untag: list[str] | None,
    star: bool | None,
    priority: int | None,
) -> dict[str, Any]:
    """Build the request body from the options that were given."""
    if notes is not None and notes_file is not None:
        raise Problem("use either --notes or --notes-file", exit_code=ExitCode.USAGE)
    if notes_file is not None:
        notes = _read(notes_file)
    fields = {
        "name": name,
        "notes": notes,
        "add_tags": tag or None,
        "remove_tags": untag or None,
        "is_starred": star,
        "priority": priority,
    }
    changes = {field: value for field, value in fields.items() if value is not None}
    if not changes:
        raise Problem("nothing to change: see trellis jobs edit --help", exit_code=ExitCode.USAGE)
    return changes


def _read(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"the notes in {path} cannot be read: {error}", exit_code=ExitCode.USAGE) from error
