"""`trellis jobs checkpoints|export|keep|prune`: what a job saved, and models made of it."""

from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_job
from trellis_cli.watch import watch_job

Job = Annotated[str, typer.Argument(help="ID (job_...) or name; the latest if several share the name.")]
OneJob = Annotated[str, typer.Argument(help="ID (job_...) or unique name.")]
Step = Annotated[int, typer.Option(min=0, help="Checkpoint step.")]
BestBy = Annotated[
    str | None, typer.Option(help=("Metric that decides the best checkpoint; default: the job's own."))
]
Mode = Annotated[str | None, typer.Option(help="max or min; default: depends on the metric.")]
#: Metrics that a terminal has room for.
SHOWN_METRICS = 3


def register(app: typer.Typer) -> None:
    """Add the commands to `trellis jobs`."""
    for command in (checkpoints, export, keep, prune):
        app.command()(command)


def checkpoints(job: Job, best_by: BestBy = None, mode: Mode = None, as_json: Json = False) -> None:
    """List a job's checkpoints with their metrics; the best is starred."""
    client = connect()
    job = find_job(client, job)
    found = list(client.pages(f"/jobs/{job}/checkpoints", best_by=best_by, mode=mode))
    if as_json:
        print_json(found)
        return
    headline = client.get(f"/jobs/{job}")["headline_metrics"]
    keys = choose_metrics(found, headline, best_by)
    rows = [
        (
            f"{each['step']}{' *' if each['is_best'] else ''}",
            each["attempt"],
            "removed" if each["is_pruned"] else size(each["size_bytes"]),
            ", ".join(each["kept_because"]),
            *(format_metric(each["metrics"].get(key)) for key in keys),
            each["path"],
        )
        for each in found
    ]
    print_table(("step", "attempt", "size", "kept", *keys, "path"), rows)


def choose_metrics(found: list[dict[str, Any]], headline: list[str], best_by: str | None) -> list[str]:
    """Choose the metrics to show: the one asked for, then the headline metrics that were measured."""
    measured = {key for each in found for key in each["metrics"]}
    wanted = [*([best_by] if best_by else []), *headline, *sorted(measured)]
    return [key for key in dict.fromkeys(wanted) if key in measured][:SHOWN_METRICS]


def format_metric(value: float | None) -> str | None:
    """Format a value with four significant digits; None if there is no value."""
    return None if value is None else f"{value:.4g}"


def export(
    job: Job,
    name: Annotated[str, typer.Option(help="Name for the registered model.")],
    step: Annotated[int | None, typer.Option(min=0, help="Checkpoint step; default: the last.")] = None,
    best: Annotated[
        bool, typer.Option("--best", help=("Export the best checkpoint instead of the last."))
    ] = False,
    best_by: BestBy = None,
    mode: Mode = None,
    form: Annotated[str, typer.Option(help="merged: full model; adapter: adapter only.")] = "merged",
    description: Annotated[str, typer.Option(help="Model description.")] = "",
    wait: Annotated[bool, typer.Option(help="Wait until the model is ready.")] = True,
    detach: Annotated[bool, typer.Option("--detach", hidden=True)] = False,
    as_json: Json = False,
) -> None:
    """Export a checkpoint as a model, register it and wait until it's done."""
    client = connect()
    job = find_job(client, job)
    if step is None:
        found = list(client.pages(f"/jobs/{job}/checkpoints", best_by=best_by, mode=mode))
        step = choose_step(found, wants_best=best or best_by is not None)
    body = {"name": name, "form": form, "description": description}
    started = client.post(f"/jobs/{job}/checkpoints/{step}/export", body)
    print_export(started if detach or not wait else await_export(client, started), as_json=as_json)


def await_export(client: ApiClient, started: dict[str, Any]) -> dict[str, Any]:
    """Wait for an export job to succeed; raise ``Problem`` with its reason if it does not."""
    ended = watch_job(client, started["id"])
    if ended["state"] != "succeeded":
        failure = ended["failure"] or {"reason": f"the export was {ended['state']}", "hint": None}
        hint = failure["hint"]["en"] if failure["hint"] else None
        raise Problem(failure["reason"], hint=hint, exit_code=ExitCode.FAILED)
    return ended


def choose_step(found: list[dict[str, Any]], *, wants_best: bool) -> int:
    """Choose the step of the best checkpoint, or of the last one that can still be exported."""
    there = [each for each in found if each["can_export"]]
    if not there:
        raise Problem("the job has no checkpoint to export", exit_code=ExitCode.REFUSED)
    if wants_best:
        best = [each for each in there if each["is_best"]]
        if not best:
            raise Problem("no checkpoint has a value for this metric", exit_code=ExitCode.REFUSED)
        return int(best[0]["step"])
    return max(int(each["step"]) for each in there)


def print_export(job: dict[str, Any], *, as_json: bool) -> None:
    """Print the export job, and its model if there is one."""
    if as_json:
        print_json(job)
        return
    model = job["exported_model"]
    made = f"  {model['id']}  {model['name']}" if model else ""
    out.print(f"{job['id']}  {styled(job['state'])}{made}", highlight=False)


def keep(
    job: OneJob,
    step: Step,
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
) -> None:
    """Pin a checkpoint so that it is never pruned."""
    client = connect()
    job = find_job(client, job, must_be_one=True)
    found = client.request("PATCH", f"/jobs/{job}/checkpoints/{step}", json={"is_kept": not off})
    out.print(f"step {found['step']}: {'kept' if found['is_kept'] else 'not kept'}", highlight=False)


def prune(job: OneJob, step: Step) -> None:
    """Delete a checkpoint's files; its metrics are kept."""
    client = connect()
    client.delete(f"/jobs/{find_job(client, job, must_be_one=True)}/checkpoints/{step}")
    out.print(f"step {step}: removed", highlight=False)
