"""`trellis agent-code`: people's own agents on a platform, as files and as packages (`/workflows`)."""

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from trellis_recipes.workflows.package import BadPackage, read_package
from trellis_recipes.workflows.packing import pack

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.file_bar import FileBar
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, age, err, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_workflow
from trellis_cli.uploading import send_file
from trellis_cli.waiting import read_patiently

app = typer.Typer(no_args_is_help=True)
Called = Annotated[str, typer.Argument(help="ID (wfl_...) or name.")]
Wait = Annotated[bool, typer.Option(help="Wait until its requirements are installed.")]
POLL_S = 0.5
_OPEN = ("queued", "installing")


@app.command()
def upload(
    path: Annotated[
        Path, typer.Argument(help=("A Python file, a folder with workflow.py, or an archive of one."))
    ],
    name: Annotated[str | None, typer.Option(help="Name; default: the file or folder name.")] = None,
    function: Annotated[
        str | None, typer.Option(help="Workflow function; default: workflow, or the only async function.")
    ] = None,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Upload agent code; a package's requirements.txt is installed into an isolated environment.

    trellis agent-code upload agent.py
    trellis agent-code upload my_agent/ --name sql-agent
    """
    if not path.exists():
        raise Problem(f"no such file or folder: {path}", exit_code=ExitCode.USAGE)
    client = connect()
    made = send_workflow(client, path, name=name, function=function, wait=wait)
    _show(made, as_json=as_json)


def send_workflow(
    client: ApiClient, path: Path, *, name: str | None = None, function: str | None = None, wait: bool = True
) -> dict[str, Any]:
    """Upload a file or a package; ``wait`` until its requirements are installed."""
    body: dict[str, Any] = {"name": name or path.resolve().name.partition(".")[0], "function": function}
    if path.suffix == ".py":
        body["code"] = path.read_text(encoding="utf-8")
    else:
        body["upload"] = _send(client, path, function)
    made = client.post("/workflows", {key: value for key, value in body.items() if value is not None})
    return _wait(client, made["id"]) if wait and made["state"] in _OPEN else made


@app.command("list")
def list_workflows(as_json: Json = False) -> None:
    """List agent code, newest first."""
    found = list(connect().pages("/workflows"))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["id"],
            escape(each["name"]),
            f"{each['function']}()",
            styled(each["state"]),
            str(len(each["files"])) if each["files"] else "1",
            size(each["size_bytes"]),
            str(each["job_count"]),
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "function", "state", "files", "size", "jobs", "age"), rows)


@app.command()
def show(workflow: Called, as_json: Json = False) -> None:
    """Show agent code with its files and installed packages."""
    client = connect()
    _show(client.get(f"/workflows/{find_workflow(client, workflow)}"), as_json=as_json)


@also_known_as(app, "retry", now="resume")
@app.command()
def resume(workflow: Called, wait: Wait = True, as_json: Json = False) -> None:
    """Resume a failed installation of requirements."""
    client = connect()
    made = client.post(f"/workflows/{find_workflow(client, workflow)}/retry")
    _show(_wait(client, made["id"]) if wait else made, as_json=as_json)


@app.command()
def delete(workflow: Called) -> None:
    """Delete agent code that isn't in use."""
    client = connect()
    client.delete(f"/workflows/{find_workflow(client, workflow)}")
    out.print(f"deleted {workflow}", highlight=False, markup=False)


def _send(client: ApiClient, path: Path, function: str | None) -> str:
    with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
        archive = path
        if path.is_dir():
            try:
                read_package(path, function)
            except BadPackage as error:
                raise Problem(
                    f"{path} is not a package of agent code", hint=str(error), exit_code=ExitCode.USAGE
                ) from error
            archive = pack(path, Path(folder) / f"{path.resolve().name}.tar.gz")
        with FileBar(archive) as bar:
            return send_file(client, archive, tell=bar.show)


def _wait(client: ApiClient, workflow_id: str) -> dict[str, Any]:
    with err.status("queued") as line:
        while True:
            found = read_patiently(client, f"/workflows/{workflow_id}")
            if found["state"] == "failed":
                raise Problem(
                    f"the requirements of '{found['name']}' cannot be installed: {found['reason']}",
                    hint=f"trellis agent-code resume {found['name']}, or upload it anew",
                    exit_code=ExitCode.FAILED,
                )
            if found["state"] not in _OPEN:
                return found
            line.update(found["state"])
            time.sleep(POLL_S)


def _show(workflow: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(workflow)
        return
    state = styled(workflow["state"])
    out.print(
        f"[bold]{escape(workflow['name'])}[/bold] {workflow['id']} {workflow['function']}() {state}"
        f" {size(workflow['size_bytes'])}",
        highlight=False,
    )
    if workflow["reason"]:
        out.print(escape(workflow["reason"]), highlight=False)
    for file, count in (workflow["files"] or {}).items():
        out.print(f"  {escape(file)}  {size(count)}", highlight=False)
    if workflow["installed"]:
        out.print(f"  installed: {escape(', '.join(workflow['installed']))}", highlight=False, soft_wrap=True)
