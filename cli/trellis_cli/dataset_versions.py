"""`trellis datasets versions|diff|rollback|tag|branch`: the history of a dataset on the platform."""

import json
from typing import Annotated, Any

import typer
from rich.markup import escape

from trellis_cli.client import ApiClient, connect
from trellis_cli.output import Json, age, out, print_json, print_table
from trellis_cli.resolve_by_name import find_dataset
from trellis_cli.task_bar import TaskBar
from trellis_cli.waiting import wait_for_task

Dataset = Annotated[str, typer.Argument(help="ID (ds_...) or name.")]
Revision = Annotated[str, typer.Argument(help="Version (at least 8 digits), branch or tag.")]
_KINDS = ("added", "removed", "changed")
_ROW_CHARACTERS = 300


def versions(
    dataset: Dataset,
    branch: Annotated[str | None, typer.Option(help="Only versions on this branch.")] = None,
    as_json: Json = False,
) -> None:
    """Show a dataset's history, newest first."""
    client = connect()
    found = list(client.pages(f"/datasets/{find_dataset(client, dataset)}/versions", branch=branch))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["number"],
            each["id"][:12],
            _splits(each),
            each["origin"],
            ", ".join((*each["branches"], *each["tags"])),
            age(each["created_at"]),
            escape(each["message"]),
        )
        for each in found
    ]
    print_table(("", "version", "rows", "made by", "names", "age", "message"), rows)


def diff(
    dataset: Dataset,
    before: Revision,
    after: Revision = "main",
    key: Annotated[
        str | None, typer.Option(help="Column that identifies rows, to detect changed ones.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, max=100, help="Number of rows of each kind to show.")] = 5,
    as_json: Json = False,
) -> None:
    """Show differences between two versions.

    trellis datasets diff chats v1 main --key id
    """
    client = connect()
    place = f"/datasets/{find_dataset(client, dataset)}/diff"
    found = compare(client, place, before, after, key)
    pages = {
        split: {kind: _read_rows(client, place, found, split, kind, rows) for kind in _KINDS if counts[kind]}
        for split, counts in found["splits"].items()
        if rows
    }
    if as_json:
        print_json({**found, "rows": pages})
        return
    print_table(
        ("split", "added", "removed", "changed", "same"),
        [
            (split, *(f"{each[kind]:,}" for kind in (*_KINDS, "same")))
            for split, each in found["splits"].items()
        ],
    )
    for column in found["columns"]:
        change = f"{column['before'] or 'none'} → {column['after'] or 'none'}"
        out.print(f"column {column['name']}: {change}", markup=False)
    for split, page in pages.items():
        for pair in (pair for kind in _KINDS for pair in page.get(kind, ())):
            _print_pair(split, pair)


def compare(client: ApiClient, place: str, before: str, after: str, key: str | None) -> dict[str, Any]:
    """Compare two versions; wait until a worker has made the comparison if there is none yet."""
    found = client.post(place, {"before": before, "after": after, "key": key})
    if found["total"] is None:
        with TaskBar() as bar:
            wait_for_task(client, found["task"]["id"], look=bar.show)
        found = client.get(place, before=found["before"], after=found["after"], key=key)
    return dict(found)


def _read_rows(
    client: ApiClient, place: str, found: dict[str, Any], split: str, kind: str, limit: int
) -> list[dict[str, Any]]:
    wanted = {name: found[name] for name in ("before", "after", "key")}
    page = client.get(f"{place}/rows", **wanted, split=split, kind=kind, limit=limit)
    return list(page["rows"])


def _print_pair(split: str, pair: dict[str, Any]) -> None:
    for sign, row in (("-", pair["before"]), ("+", pair["after"])):
        if row is not None:
            text = json.dumps(row, ensure_ascii=False)[:_ROW_CHARACTERS]
            out.print(f"{sign} {split}: {text}", markup=False, highlight=False, soft_wrap=True)


def rollback(
    dataset: Dataset,
    version: Revision,
    branch: Annotated[str, typer.Option(help="Branch to roll back.")] = "main",
    message: Annotated[str, typer.Option("--message", "-m")] = "",
    as_json: Json = False,
) -> None:
    """Roll back to an earlier version by adding it as a new one; the history is kept."""
    client = connect()
    body = {"version": version, "branch": branch, "message": message}
    made = client.post(f"/datasets/{find_dataset(client, dataset)}/rollback", body)
    if as_json:
        print_json(made)
    else:
        out.print(f"{made['id'][:12]}  {_splits(made)}", markup=False, highlight=False)


Delete = Annotated[bool, typer.Option("--delete", help="Delete the name; the version is kept.")]


def tag(
    dataset: Dataset,
    name: str,
    version: Revision = "main",
    delete: Delete = False,
    as_json: Json = False,
) -> None:
    """Tag a version: `trellis datasets tag chats v1`."""
    _name("tags", dataset, name, version, delete=delete, as_json=as_json)


def branch(
    dataset: Dataset,
    name: str,
    version: Revision = "main",
    delete: Delete = False,
    as_json: Json = False,
) -> None:
    """Create a branch at a version: `trellis datasets branch chats strict v1`."""
    _name("branches", dataset, name, version, delete=delete, as_json=as_json)


def _name(kind: str, dataset: str, name: str, version: str, *, delete: bool, as_json: bool) -> None:
    client = connect()
    place = f"/datasets/{find_dataset(client, dataset)}/{kind}"
    if delete:
        client.delete(f"{place}/{name}")
        return
    made = client.post(place, {"name": name, "version": version})
    if as_json:
        print_json(made)
    else:
        out.print(f"{made['name']}  {made['version'][:12]}", markup=False, highlight=False)


def register(app: typer.Typer) -> None:
    """Add the commands to `trellis datasets`."""
    for command in (versions, diff, rollback, tag, branch):
        app.command()(command)


def _splits(version: dict[str, Any]) -> str:
    return ", ".join(f"{split} {count:,}" for split, count in version["splits"].items())
