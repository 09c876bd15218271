"""`trellis endpoints`: models and checkpoints that answer requests."""

import time
from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, age, err, out, print_json, print_table, styled
from trellis_cli.resolve_by_name import find_job, find_model, look_for_model
from trellis_cli.waiting import WaitForEnd, wait_for_end

app = typer.Typer(no_args_is_help=True)
Served = Annotated[str, typer.Argument(help="Model name or ID, or a checkpoint as JOB:STEP.")]
Called = Annotated[str, typer.Argument(help="ID (ep_...) or model name.")]
_POLL_S = 1.0
_LOAD = ("tokens/s", "waiting", "first token")
_STOPPED = frozenset({"stopped", "failed"})
_OVER = _STOPPED | {"ready"}


@app.command("list")
def list_endpoints(as_json: Json = False) -> None:
    """List all endpoints, newest first."""
    endpoints = list(connect().pages("/endpoints"))
    if as_json:
        print_json(endpoints)
        return
    rows = [
        (
            each["id"],
            each["name"],
            styled(each["state"]),
            age(each["state_since"]),
            age(each["last_used_at"]),
            *_load_of(each),
            each["max_model_len"],
            each["failure"]["reason"] if each["failure"] else None,
        )
        for each in endpoints
    ]
    columns = ("id", "name", "state", "for", "used", *_LOAD, "context", "reason")
    print_table(columns, rows)


@app.command()
def start(
    model: Served,
    idle: Annotated[
        float | None, typer.Option("--idle", min=10, help="Stop after this many seconds without a request.")
    ] = None,
    context: Annotated[
        int | None, typer.Option("--context", min=16, help="Max context length: prompt plus answer tokens.")
    ] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option(
            "--preemptible/--keep",
            help="Whether jobs and endpoints may take its place; default: unchanged, at first yes.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Serve a model or a checkpoint."""
    client = connect()
    body = {"idle_timeout_s": idle, "max_model_len": context, "preemptible": preemptible}
    endpoint = client.post(f"{path_of(client, model)}/endpoint", body)
    if wait:
        endpoint = wait_until_ready(client, endpoint)
    if refusal := endpoint["sharing_refusal"]:
        told = f"it has its own engine, because its base model's engine can't load it: {refusal['reason']}"
        err.print(told, style="dim", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print_json(endpoint)
    else:
        out.print(f"{endpoint['id']}  {endpoint['name']}  {endpoint['state']}", highlight=False)


@app.command()
def edit(
    endpoint: Called,
    idle: Annotated[
        float | None,
        typer.Option("--idle", min=10, help="Stop after this many seconds without a request."),
    ] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option(
            "--preemptible/--keep",
            help="Whether training jobs and other endpoints that need its slot may stop it.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Change an endpoint's options at once, without loading or stopping it."""
    wanted = {"idle_timeout_s": idle, "preemptible": preemptible}
    body = {name: value for name, value in wanted.items() if value is not None}
    if not body:
        raise Problem("nothing to change", hint="--keep, --preemptible or --idle", exit_code=ExitCode.USAGE)
    client = connect()
    changed = client.request("PATCH", f"/endpoints/{find_endpoint(client, endpoint)}", json=body)
    if as_json:
        print_json(changed)
        return
    kept = "preemptible" if changed["preemptible"] else "kept loaded"
    told = f"{changed['id']}  {changed['name']}  {kept}, stops after {changed['idle_timeout_s']:g} s idle"
    out.print(told, highlight=False)


@app.command()
def stop(
    endpoint: Called,
    wait: WaitForEnd = False,
    as_json: Json = False,
) -> None:
    """Stop an endpoint and free its slot and memory."""
    client = connect()
    path = f"/endpoints/{find_endpoint(client, endpoint)}"
    stopped = client.request("DELETE", path)
    if wait:
        stopped = wait_for_end(client, path, _STOPPED)
    if as_json:
        print_json(stopped)
    else:
        out.print(f"{stopped['id']}  {stopped['name']}  {stopped['state']}", highlight=False)


def _load_of(endpoint: dict[str, Any]) -> tuple[str | None, int | None, str | None]:
    """Return tokens per second, waiting requests and mean time to first token; None where not measured."""
    load = endpoint["load"]
    if load is None:
        return None, None, None
    first = load["first_token_mean_s"]
    return (
        f"{load['generated_tokens_per_s']:.1f}",
        load["waiting"],
        None if first is None else f"{first:.2f} s",
    )


def path_of(client: ApiClient, called: str) -> str:
    """Return the API path of what is to be served: a model, or a checkpoint (``JOB:STEP``)."""
    found = look_for_model(client, called)
    if found is not None:
        return f"/models/{found}"
    job, colon, step = called.rpartition(":")
    if colon and step.isdigit():
        return f"/jobs/{find_job(client, job)}/checkpoints/{step}"
    return f"/models/{find_model(client, called)}"


def find_endpoint(client: ApiClient, called: str) -> str:
    """Return the id of the endpoint of this id or name."""
    if called.startswith("ep_"):
        return called
    for each in client.pages("/endpoints"):
        if each["name"] == called or (each["model"] and each["model"]["id"] == called and not each["job"]):
            return str(each["id"])
    raise Problem(f"no endpoint named '{called}'", hint="trellis endpoints list", exit_code=ExitCode.REFUSED)


def wait_until_ready(client: ApiClient, endpoint: dict[str, Any]) -> dict[str, Any]:
    """Wait until the endpoint is ready; raise ``Problem`` if it failed or was stopped instead."""
    if endpoint["state"] not in _OVER:
        err.print(f"[dim]loading {endpoint['name']}...[/dim]")
    while endpoint["state"] not in _OVER:
        time.sleep(_POLL_S)
        endpoint = client.get(f"/endpoints/{endpoint['id']}")
    if endpoint["state"] == "ready":
        return endpoint
    failure, successor = endpoint["failure"], endpoint["preempted_by"]
    why = "it was stopped"
    if successor:
        kind = "endpoint" if successor["id"].startswith("ep_") else "job"
        why = f"it made room for {kind} {successor['name'] or successor['id']}"
    raise Problem(
        f"{endpoint['name']} is {endpoint['state']}: {failure['reason'] if failure else why}",
        hint=failure["hint"]["en"] if failure and failure["hint"] else None,
    )
