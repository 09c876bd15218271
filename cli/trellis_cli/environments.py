"""`trellis environments`: what agents work on; made by the platform, tools tried by hand."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from trellis_contracts.environments import UPLOAD_PREFIX

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.file_bar import FileBar
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, age, err, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_environment
from trellis_cli.uploading import send_file
from trellis_cli.waiting import read_patiently

app = typer.Typer(no_args_is_help=True)
POLL_S = 0.5
Called = Annotated[str, typer.Argument(help="ID (env_...) or name.")]


@app.command()
def kinds(as_json: Json = False) -> None:
    """List environment kinds and their parameters."""
    found = connect().get("/environments/kinds")["items"]
    if as_json:
        print_json(found)
        return
    for kind in found:
        out.print(f"[bold]{kind['name']}[/bold]: {escape(kind['help']['en'])}", highlight=False)
        rows = [
            (each["name"], each["type"], json.dumps(each["default"]), escape(each["help"]["en"]))
            for each in kind["parameters"]
        ]
        print_table(("parameter", "type", "default", "meaning"), rows)


@also_known_as(app, "make", now="create")
@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Environment name.")],
    kind: Annotated[str, typer.Option(help="Kind; see `trellis environments kinds`.")] = "linksearch",
    param: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter as NAME=VALUE; repeatable.")
    ] = None,
    upload: Annotated[
        list[str] | None,
        typer.Option("--upload", help="Parameter from a local file, as NAME=FILE; repeatable."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Create an environment; its rows become a dataset.

    trellis environments create people --kind linksearch --set profiles=2000 --set train=1000 --set eval=100
    trellis environments create ours --kind linksearch_database --upload database=own.db --set queries=people
    trellis environments create mine --kind own_tools --upload tools=tools.json --upload code=tools.py
    """
    values, files = _once([_parse(each) for each in param or ()], [_split(each) for each in upload or ()])
    client = connect()
    parameters = values | {key: _send(client, file) for key, file in files.items()}
    body = {"name": name, "kind": kind, "parameters": parameters}
    made = client.post("/environments", body)
    if wait:
        made = _wait(client, made["id"])
    _show(made, as_json=as_json)


@app.command("list")
def list_environments(as_json: Json = False) -> None:
    """List environments, newest first."""
    found = list(connect().pages("/environments"))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["id"],
            escape(each["name"]),
            each["kind"],
            styled(each["state"]),
            _counts(each),
            size(each["size_bytes"]),
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "kind", "state", "holds", "size", "age"), rows)


@app.command()
def show(environment: Called, as_json: Json = False) -> None:
    """Show an environment with its tools and datasets."""
    client = connect()
    _show(client.get(f"/environments/{find_environment(client, environment)}"), as_json=as_json)


@app.command()
def call(
    environment: Called,
    tool: Annotated[str, typer.Argument(help="Tool name.")],
    arguments: Annotated[str, typer.Argument(help="Arguments as a JSON object.")] = "{}",
    as_json: Json = False,
) -> None:
    """Call a tool the way an episode would.

    trellis environments call people search_profile '{"sql": "SELECT name FROM profiles LIMIT 3"}'
    """
    try:
        given = json.loads(arguments)
    except json.JSONDecodeError as error:
        raise Problem(f"the arguments are not valid JSON: {error}", exit_code=ExitCode.USAGE) from error
    client = connect()
    place = f"/environments/{find_environment(client, environment)}/calls"
    found = client.post(place, {"tool": tool, "arguments": given})
    while found["state"] in ("queued", "running"):
        time.sleep(POLL_S)
        found = read_patiently(client, f"{place}/{found['id']}")
    if as_json:
        print_json(found)
    elif found["state"] == "succeeded":
        out.print_json(json.dumps(found["result"]))
        told = [f"{found['duration_s'] * 1000:.0f} ms"]
        told += [f"{found['result_count']} results"] if found["result_count"] is not None else []
        told += [f"[red]{escape(found['error'])}[/red]"] if found["error"] else []
        err.print(", ".join(told), highlight=False)
    if found["state"] != "succeeded":
        raise Problem(f"the call has {found['state']}: {found['reason']}", exit_code=ExitCode.FAILED)


@app.command()
def delete(environment: Called) -> None:
    """Delete an environment and its files; its datasets are kept."""
    client = connect()
    client.delete(f"/environments/{find_environment(client, environment)}")


def _wait(client: ApiClient, environment_id: str) -> dict[str, Any]:
    with err.status("queued") as line:
        while True:
            found = read_patiently(client, f"/environments/{environment_id}")
            if found["state"] == "ready":
                return found
            if found["state"] == "failed":
                raise Problem(
                    f"'{found['name']}' could not be created: {found['reason']}",
                    hint=f"error code: {found['cause']}",
                    exit_code=ExitCode.FAILED,
                )
            line.update(f"{found['state']} {found['phase'] or ''}")
            time.sleep(POLL_S)


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    out.print(
        f"{found['id']}  [bold]{escape(found['name'])}[/bold]  {found['kind']}  {styled(found['state'])}",
        highlight=False,
    )
    if found["reason"]:
        out.print(f"[red]{escape(found['reason'])}[/red]", highlight=False)
    if found["counts"]:
        out.print(_counts(found), highlight=False)
    for each in found["datasets"]:
        splits = ", ".join(f"{name}: {count}" for name, count in each["splits"].items())
        out.print(
            f"dataset {each['dataset']['id']}  {escape(each['dataset']['name'] or 'deleted')}  {splits}",
            highlight=False,
        )
    shown = found["tools"][:20]
    if shown:
        rows = [
            (
                escape(tool["name"]),
                escape(", ".join(tool["parameters"].get("properties", {}))),
                escape(tool["description"]),
            )
            for tool in shown
        ]
        print_table(("tool", "arguments", "what it does"), rows)
    if len(found["tools"]) > len(shown):
        out.print(f"... and {len(found['tools']) - len(shown)} more tools (--json)", highlight=False)


def _counts(found: dict[str, Any]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found["counts"].items())


def _once(
    values: list[tuple[str, Any]], files: list[tuple[str, Path]]
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return parameters and files by name; raise ``Problem`` for a name given twice."""
    names = [name for name, _ in [*values, *files]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Problem(
            f"the parameter {twice} is given twice (--set and --upload together)", exit_code=ExitCode.USAGE
        )
    return dict(values), dict(files)


def _split(text: str) -> tuple[str, Path]:
    name, sign, file = text.partition("=")
    path = Path(file).expanduser()
    if not sign or not name or not path.is_file():
        raise Problem(f"--upload {text}: use NAME=FILE with a local file", exit_code=ExitCode.USAGE)
    return name, path


def _send(client: ApiClient, file: Path) -> str:
    """Upload a file and return the reference that a parameter takes."""
    with FileBar(file) as bar:
        return f"{UPLOAD_PREFIX}{send_file(client, file, tell=bar.show)}"


def _parse(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Problem(f"--set {text}: write NAME=VALUE", exit_code=ExitCode.USAGE)
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
