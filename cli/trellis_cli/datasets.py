"""`trellis datasets`: rows on the platform (their versions: `dataset_versions`)."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from trellis_cli import dataset_versions
from trellis_cli.client import ApiClient, connect
from trellis_cli.dataset_download import download
from trellis_cli.dataset_samples import get, samples
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.file_bar import FileBar
from trellis_cli.output import Json, age, err, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_dataset
from trellis_cli.task_bar import TaskBar
from trellis_cli.uploading import Note, send_file
from trellis_cli.waiting import wait_for_dataset, wait_for_task

app = typer.Typer(no_args_is_help=True)
dataset_versions.register(app)
app.command()(download)
app.command()(samples)
app.command()(get)
Dataset = Annotated[str, typer.Argument(help="ID (ds_...) or name.")]
Version = Annotated[str | None, typer.Option(help="Version, branch or tag; default: main.")]
Split = Annotated[str | None, typer.Option(help="Split; default: train, or the only one.")]

Name = Annotated[str | None, typer.Option(help="Name of the new dataset; default: from the source.")]
Into = Annotated[
    str | None,
    typer.Option("--to", help="Add the rows to this dataset as a new version instead of creating a dataset."),
]
Mode = Annotated[Literal["append", "replace"], typer.Option(help="With --to: append to or replace its rows.")]
Branch = Annotated[str, typer.Option(help="With --to: branch for the new version.")]
Mixed = Annotated[
    Literal["quarantine", "text"],
    typer.Option(
        help=(
            "For columns that mix numbers and text: keep the first type and quarantine the rest, "
            "or convert all to text."
        )
    ),
]
Description = Annotated[
    str, typer.Option(help=("Description of the new dataset, or message of the new version with --to."))
]
License = Annotated[
    list[str] | None,
    typer.Option("--license", help="License of the new dataset, e.g. apache-2.0; repeatable."),
]
Wait = Annotated[bool, typer.Option(help="Wait until the import finishes.")]


@app.command()
def upload(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            exists=True,
            dir_okay=False,
            help=("JSONL, JSON, CSV or Parquet files, optionally compressed."),
        ),
    ],
    name: Name = None,
    to: Into = None,
    mode: Mode = "append",
    branch: Branch = "main",
    mixed: Mixed = "quarantine",
    description: Description = "",
    licenses: License = None,
    resume: Annotated[
        str | None, typer.Option(help="Upload to resume; default: the one started for this file.")
    ] = None,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Upload files and import each as a dataset; interrupted uploads resume.

    trellis datasets upload chats.jsonl.gz
    trellis datasets upload july.jsonl august.jsonl --to chats
    """
    if len(files) > 1 and (resume or (name and not to)):
        raise Problem("--name and --resume only work with a single file", exit_code=ExitCode.USAGE)
    client = connect()
    request = _describe_import(client, name, to, mode, branch, mixed, description, licenses)
    for file in files:
        with FileBar(file) as bar:
            source = {"kind": "upload", "upload": send_file(client, file, resume=resume, tell=bar.show)}
        _import(client, {**request, "source": source}, wait=wait, as_json=as_json, sent=file)


@app.command("import")
def import_rows(
    source: Annotated[
        str,
        typer.Argument(
            help="path:FILE in the data root, hub:OWNER/NAME\\[@REVISION], "
            "modelscope:OWNER/NAME\\[@REVISION] or s3://BUCKET/KEY."
        ),
    ],
    name: Name = None,
    under: Annotated[str, typer.Option(help="Only this folder or file of the Hub dataset.")] = "",
    to: Into = None,
    mode: Mode = "append",
    branch: Branch = "main",
    mixed: Mixed = "quarantine",
    description: Description = "",
    licenses: License = None,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Import data the platform can access directly.

    trellis datasets import hub:openai/gsm8k@main --under main --name gsm8k
    """
    where = parse_source(source, under)
    client = connect()
    request = _describe_import(client, name, to, mode, branch, mixed, description, licenses)
    _import(client, {**request, "source": where}, wait=wait, as_json=as_json)


#: The default branch of a dataset on each hub.
_HUBS = {"hub": "main", "modelscope": "master"}


def parse_source(text: str, under: str = "") -> dict[str, Any]:
    """Parse a source given as text into the request's ``source``."""
    kind, _, rest = text.partition(":")
    if under and kind not in _HUBS:
        raise Problem("--under requires a hub: or modelscope: source", exit_code=ExitCode.USAGE)
    if kind == "path" and rest:
        return {"kind": "path", "path": rest}
    if kind in _HUBS and (found := re.fullmatch(r"([^@]+)(?:@([^@]+))?", rest)):
        revision = found[2] or _HUBS[kind]
        where = {"kind": "hub", "repo_id": found[1], "revision": revision, "under": under}
        return {**where, "hub": kind} if kind == "modelscope" else where
    if text.startswith("s3://"):
        return {"kind": "s3", "url": text}
    raise Problem(
        f"invalid source '{text}'",
        hint="path:FILE, hub:OWNER/NAME[@REVISION], modelscope:OWNER/NAME[@REVISION] or s3://BUCKET/KEY; "
        "a file of this machine is uploaded: trellis datasets upload",
        exit_code=ExitCode.USAGE,
    )


def _describe_import(
    client: ApiClient,
    name: str | None,
    to: str | None,
    mode: str,
    branch: str,
    mixed: str,
    description: str,
    licenses: list[str] | None,
) -> dict[str, Any]:
    """Build the request except its source; ``to`` is an existing dataset, if given."""
    if to is None:
        if mode != "append" or branch != "main":
            raise Problem("--mode and --branch require --to", exit_code=ExitCode.USAGE)
        made = {"to": None, "mixed": mixed, "name": name, "description": description}
        return made if not licenses else {**made, "licences": licenses}
    if licenses:
        raise Problem("--license is for a new dataset; use it without --to", exit_code=ExitCode.USAGE)
    if name is not None:
        raise Problem("use --name for a new dataset or --to for an existing one", exit_code=ExitCode.USAGE)
    found = find_dataset(client, to)
    return {"to": found, "mixed": mixed, "mode": mode, "branch": branch, "message": description}


def _import(
    client: ApiClient, request: dict[str, Any], *, wait: bool, as_json: bool, sent: Path | None = None
) -> None:
    to = request.pop("to")
    if to is None:
        dataset = client.post("/datasets/imports", request)
        task = dataset["task"]
    else:
        task = client.post(f"/datasets/{to}/imports", request)
        dataset = client.get(f"/datasets/{to}")
    if sent is not None:
        Note(client, sent).forget()
    if wait:
        with TaskBar() as bar:
            if to is None:
                dataset = wait_for_dataset(client, dataset["id"], look=bar.show)
            else:
                task = wait_for_task(client, task["id"], look=bar.show)
                dataset = client.get(f"/datasets/{to}")
    if as_json:
        print_json(dataset if to is None else task)
    elif wait:
        _print_imported(dataset)
    else:
        state = dataset["state"] if to is None else task["state"]
        out.print(f"{dataset['id']}  {escape(dataset['name'])}  {styled(state)}", highlight=False)


def _print_imported(dataset: dict[str, Any]) -> None:
    out.print(
        f"{dataset['id']}  {dataset['name']}  {dataset['row_count']} rows, "
        f"{dataset['format']}: {dataset['format_reason']}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    _print_warnings(dataset)


def _print_warnings(dataset: dict[str, Any]) -> None:
    for warning in dataset["warnings"]:
        err.print("[yellow]warning:[/yellow]", escape(warning["message"]), soft_wrap=True)


@app.command("list")
def list_datasets(
    text: Annotated[str | None, typer.Option(help="Search names and descriptions.")] = None,
    as_json: Json = False,
) -> None:
    """List datasets, newest first."""
    found = list(connect().pages("/datasets", text=text))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["id"],
            escape(each["name"]),
            styled(each["state"]),
            each["format"],
            f"{each['row_count']:,}",
            size(each["size_bytes"]),
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "state", "format", "rows", "size", "age"), rows)


@app.command()
def show(dataset: Dataset, as_json: Json = False) -> None:
    """Show a dataset: format, source, size and warnings."""
    client = connect()
    found = client.get(f"/datasets/{find_dataset(client, dataset)}")
    if as_json:
        print_json(found)
        return
    columns = ", ".join(f"{role}: {column}" for role, column in found["format_columns"].items())
    splits = ", ".join(f"{split} {count:,}" for split, count in found["splits"].items())
    rows = [
        ("dataset", f"{found['id']}  {escape(found['name'])}"),
        ("state", styled(found["state"])),
        ("source", escape(f"{found['source']['kind']}  {found['source']['name']}")),
        ("version", (found["head"] or "")[:12]),
        ("rows", f"{found['row_count']:,}  {splits}  {size(found['size_bytes'])}"),
        ("format", escape(f"{found['format'] or ''}  {columns}")),
        ("", escape(found["format_reason"] or "")),
        ("page", f"{client.url}/datasets/{found['id']}"),
    ]
    print_table(("", ""), rows)
    task = found["task"]
    if task and task["reason"]:
        out.print(f"[red]{escape(task['reason'])}[/red]", highlight=False)
    if found["columns"]:
        out.print()
        print_table(
            ("column", "type"), [(escape(each["name"]), escape(each["type"])) for each in found["columns"]]
        )
    _print_warnings(found)


@app.command()
def rows(
    dataset: Dataset,
    version: Version = None,
    split: Split = None,
    text: Annotated[str | None, typer.Option(help="Only rows containing this text.")] = None,
    offset: Annotated[int, typer.Option(min=0, help="First row to print.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
) -> None:
    """Print rows as JSON Lines.

    trellis datasets rows chats --text refund | jq .messages
    """
    client = connect()
    place = f"/datasets/{find_dataset(client, dataset)}/rows"
    if text is None:
        page = client.get(place, version=version, split=split, offset=offset, limit=limit)
        found = page["rows"]
    else:
        wanted = {"version": version, "split": split, "text": text}
        found = search(client, place, wanted, offset, limit)
    for row in found:
        print_json(row)


def search(
    client: ApiClient, place: str, wanted: dict[str, Any], offset: int, limit: int
) -> list[dict[str, Any]]:
    """Search for matching rows; one call searches for about a second, so there may be several."""
    found: list[dict[str, Any]] = []
    cursor: int | None = offset
    while cursor is not None and len(found) < limit:
        body = {**wanted, "cursor": cursor, "limit": limit - len(found)}
        page = client.post(f"{place}/search", body)
        found += page["rows"]
        cursor = page["next_cursor"]
    return found


@app.command()
def delete(
    dataset: Dataset,
    version: Annotated[
        str | None, typer.Option(help="Delete only this version; fails if it is in use.")
    ] = None,
) -> None:
    """Delete a dataset and all its versions; fails while a job or task uses it."""
    client = connect()
    place = f"/datasets/{find_dataset(client, dataset)}"
    client.delete(place if version is None else f"{place}/versions/{version}")
