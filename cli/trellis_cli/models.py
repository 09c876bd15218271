"""`trellis models`: weights that jobs start from."""

from typing import Annotated, Any

import typer

from trellis_cli.client import connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, age, print_json, print_table, size, styled

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_models(as_json: Json = False) -> None:
    """Registered models, newest first."""
    models = list(connect().pages("/models"))
    if as_json:
        print_json(models)
        return
    rows = [
        (
            each["id"],
            each["name"],
            styled(each["state"]),
            each["architecture"],
            each["parameter_count"],
            size(each["size_bytes"]),
            age(each["created_at"]),
        )
        for each in models
    ]
    print_table(("id", "name", "state", "architecture", "parameters", "size", "age"), rows)


@app.command()
def show(model: str) -> None:
    """All that is known about a model, as JSON."""
    print_json(connect().get(f"/models/{model}"))


@app.command()
def register(
    source: Annotated[str, typer.Argument(help="Folder below the data root, or owner/name of a model hub.")],
    name: Annotated[str | None, typer.Option(help="Name to show; default the source.")] = None,
    hub: Annotated[bool, typer.Option("--hub", help="The source is a model hub's id.")] = False,
    revision: Annotated[str, typer.Option(help="Branch, tag or commit of a hub model.")] = "main",
    job: Annotated[bool, typer.Option("--job", help="The source is a job: register its checkpoint.")] = False,
    step: Annotated[
        int | None, typer.Option(help="Step of the job's checkpoint; default the newest.")
    ] = None,
) -> None:
    """Register weights: `models/starter`, `Qwen/Qwen3-0.6B --hub`, or `job_... --job`."""
    client = connect()
    origin: dict[str, Any]
    if job:
        origin = {
            "kind": "checkpoint",
            "job_id": source,
            "step": newest_step(list(client.pages(f"/jobs/{source}/checkpoints")), step),
        }
    elif hub:
        origin = {"kind": "hub", "repo_id": source, "revision": revision}
    else:
        origin = {"kind": "local", "path": source}
    print_json(client.post("/models", {"name": name or source, "source": origin}))


def newest_step(checkpoints: list[dict[str, Any]], wanted: int | None) -> int:
    """The step asked for, or that of the newest checkpoint."""
    if wanted is not None:
        return wanted
    if not checkpoints:
        raise Problem("the job has no checkpoint", exit_code=ExitCode.REFUSED)
    return max(int(checkpoint["step"]) for checkpoint in checkpoints)


@app.command()
def delete(model: str) -> None:
    """Forget a model."""
    connect().delete(f"/models/{model}")


@app.command()
def lineage(model: str, as_json: Json = False) -> None:
    """What a model was made from, and what was made from it."""
    found = connect().get(f"/models/{model}/lineage")
    if as_json:
        print_json(found)
        return
    nodes = {node["id"]: node for node in found["nodes"]}
    rows = [
        (
            describe_node(nodes[edge["source"]]),
            edge["role"] if edge["step"] is None else f"{edge['role']} of step {edge['step']}",
            describe_node(nodes[edge["target"]]),
        )
        for edge in found["edges"]
    ]
    print_table(("from", "as", "to"), rows)


def describe_node(node: dict[str, Any]) -> str:
    """A model, job or dataset in a line; what was deleted keeps its name."""
    ending = "" if node["exists"] else "  (deleted)"
    kind = node["recipe"] if node["kind"] == "job" and node["recipe"] else node["kind"]
    return f"{kind} {node['name'] or ''}  {node['id']}{ending}"
