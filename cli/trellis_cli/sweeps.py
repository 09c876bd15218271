"""`trellis sweeps`: one training many times, with parameters or seeds that vary."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from trellis_cli.checkpoints import await_export, print_export
from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.following import follow_parts
from trellis_cli.output import Json, age, err, out, print_json, print_table, styled
from trellis_cli.resolve_by_name import find_sweep

app = typer.Typer(no_args_is_help=True)
Called = Annotated[str, typer.Argument(help="ID (swp_...) or name; the latest if several share the name.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it finishes; exits with 0 on success.")]
_UNDER_WAY = ("running", "stopping")


@app.command()
def submit(
    file: Annotated[
        Path,
        typer.Option(
            "-f",
            exists=True,
            dir_okay=False,
            help=("Sweep in YAML or JSON; see docs/sweeps.md for an example."),
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Overrides the name in the file.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate and show what would run, without starting anything.")
    ] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Validate a sweep and start it. Refer to models and datasets by name or ID."""
    client = connect()
    document = _read_document(client, file)
    if name:
        document["name"] = name
    if dry_run:
        _print_preview(client.post("/sweeps/preview", document), as_json=as_json)
        return
    _follow_and_print(client, client.post("/sweeps", document), wait=wait, as_json=as_json)


def _read_document(client: ApiClient, file: Path) -> dict[str, Any]:
    """Send the file to the API and return the parsed document; report problems with their line numbers."""
    found = client.post("/sweeps/check", {"yaml": file.read_text(encoding="utf-8")})
    if found["document"] is None:
        told = [
            f"{file}:{each['line'] or 1}: {each['field'] or 'document'}: {each['message']}"
            for each in found["problems"]
        ]
        raise Problem("\n".join(told), exit_code=ExitCode.REFUSED)
    document: dict[str, Any] = found["document"]
    return document


def _print_preview(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    goal = found["objective"]
    out.print(
        f"{found['runs']} runs of {found['trials']} combinations, {found['parallel']} at a time; "
        f"{goal['take']} {goal['metric']}, {goal['mode']}",
        markup=False,
    )
    for values in found["examples"]:
        out.print("  " + values_text(values), markup=False)
    for each in found["warnings"]:
        err.print(f"warning: {each['field']}: {each['message']}", markup=False)


@app.command("list")
def list_sweeps(as_json: Json = False) -> None:
    """List sweeps, newest first."""
    found = list(connect().pages("/sweeps"))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["id"],
            escape(each["name"]),
            styled(each["state"]),
            f"{sum(each['counts'].values())}/{each['planned_runs']}",
            escape(", ".join(each["parameters"]) or "seed"),
            _best_text(each),
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "state", "runs", "varies", "best", "age"), rows)


@app.command()
def show(sweep: Called, wait: Wait = False, as_json: Json = False) -> None:
    """Show a sweep and its runs, best first."""
    client = connect()
    _follow_and_print(client, client.get(f"/sweeps/{find_sweep(client, sweep)}"), wait=wait, as_json=as_json)


@app.command()
def stop(sweep: Called, wait: Wait = False, as_json: Json = False) -> None:
    """Stop a sweep: no new runs start, and running ones save a checkpoint and exit."""
    client = connect()
    found = client.post(f"/sweeps/{find_sweep(client, sweep)}/stop")
    _print(_follow(client, found["id"]) if wait else found, as_json=as_json)


@app.command()
def resume(sweep: Called, wait: Wait = False, as_json: Json = False) -> None:
    """Resume a sweep: stopped runs continue from their checkpoints, then new runs start."""
    client = connect()
    found = client.post(f"/sweeps/{find_sweep(client, sweep)}/resume")
    _follow_and_print(client, found, wait=wait, as_json=as_json)


@app.command()
def delete(sweep: Called) -> None:
    """Delete a sweep that isn't running; its jobs are kept."""
    client = connect()
    client.delete(f"/sweeps/{find_sweep(client, sweep)}")


@app.command()
def export(
    sweep: Called,
    name: Annotated[str, typer.Option(help="Name for the registered model.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the model is ready.")] = False,
    as_json: Json = False,
) -> None:
    """Export the best run's best checkpoint as a model."""
    client = connect()
    found = client.get(f"/sweeps/{find_sweep(client, sweep)}")
    job = _best_job(found)
    goal = found["objective"]
    listed = list(client.pages(f"/jobs/{job}/checkpoints", best_by=goal["metric"], mode=goal["mode"]))
    kept = [each for each in listed if each["can_export"]]
    if not kept:
        raise Problem(f"the best run {job} has no checkpoint to export", exit_code=ExitCode.REFUSED)
    step = next((each["step"] for each in kept if each["is_best"]), kept[0]["step"])
    made = client.post(f"/jobs/{job}/checkpoints/{step}/export", {"name": name})
    if wait:
        print_export(await_export(client, made), as_json=as_json)
    elif as_json:
        print_json(made)
    else:
        out.print(f"{made['id']} exports step {step} of {job} as {escape(name)}", highlight=False)


@app.command()
def clone(
    sweep: Called,
    name: Annotated[str | None, typer.Option(help="Name of the new job.")] = None,
    as_json: Json = False,
) -> None:
    """Clone the best run as a separate job."""
    client = connect()
    found = client.get(f"/sweeps/{find_sweep(client, sweep)}")
    made = client.post(f"/jobs/{_best_job(found)}/clone", {"name": name} if name else {})
    if as_json:
        print_json(made)
    else:
        out.print(f"{made['id']}  {escape(made['name'])}", highlight=False)


def _best_job(found: dict[str, Any]) -> str:
    best = next((run for run in found["runs"] if run["index"] == found["best_run"]), None)
    if best is None or best["job"] is None or best["job"]["name"] is None:
        raise Problem(f"'{found['name']}' has no best run yet", exit_code=ExitCode.REFUSED)
    return str(best["job"]["id"])


def _follow_and_print(client: ApiClient, found: dict[str, Any], *, wait: bool, as_json: bool) -> None:
    if wait:
        found = _follow(client, found["id"])
    _print(found, as_json=as_json)
    if wait and found["state"] != "succeeded":
        raise Problem(
            f"the sweep is {found['state']}{': ' + found['reason'] if found['reason'] else ''}",
            exit_code=ExitCode.FAILED,
        )


def _follow(client: ApiClient, sweep_id: str) -> dict[str, Any]:
    """Wait for its end and tell every change of a run."""
    return follow_parts(
        client,
        f"/sweeps/{sweep_id}",
        under_way=_UNDER_WAY,
        parts=lambda found: (
            (
                run["index"],
                run["state"],
                f"run {run['index'] + 1}: {styled(run['state'])}  {values_text(run['values'])}",
            )
            for run in found["runs"]
        ),
        progress=lambda found: f"{len(found['runs'])}/{found['planned_runs']} {_best_text(found)}",
        again=f"trellis sweeps show {sweep_id} --wait",
    )


def values_text(values: dict[str, Any]) -> str:
    """Format values in one line."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def _best_text(found: dict[str, Any]) -> str:
    best = found["best"]
    if best is None:
        return ""
    finished, planned = best["finished_seeds"], best["planned_seeds"]
    seeds = f" ({finished} of {planned} seeds)" if planned > 1 and finished < planned else ""
    return f"{best['mean']:.4g} {escape(values_text(best['values']))}".strip() + seeds


def _print(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    goal = found["objective"]
    out.print(
        f"{found['id']}  [bold]{escape(found['name'])}[/bold]  {styled(found['state'])}  "
        f"{goal['take']} {escape(goal['metric'])} ({goal['mode']})",
        highlight=False,
    )
    if found["reason"]:
        out.print(escape(found["reason"]))
    if found["best"]:
        out.print(f"best: {_best_text(found)}", highlight=False)
    place = {each["trial"]: number for number, each in enumerate(found["trials"])}
    runs = sorted(found["runs"], key=lambda run: (place.get(run["trial"], len(place)), run["index"]))
    names = list(dict.fromkeys(name for run in runs for name in run["values"]))
    rows = [
        (
            str(run["index"] + 1),
            styled(run["state"]),
            "" if run["value"] is None else f"{run['value']:.4g}",
            *(str(run["values"].get(name, "")) for name in names),
            str(run["seed"]),
            run["job"]["id"] if run["job"] else "",
            escape(run["problem"] or run["prune_reason"] or ""),
        )
        for run in runs
    ]
    print_table(("run", "state", "value", *names, "seed", "job", "why"), rows)
    for each in found["importance"]["parameters"]:
        out.print(
            f"importance of {escape(each['parameter'])}: {each['importance']:.2f} (p = {each['p_value']:.2f})"
        )
