"""`trellis jobs`: launch, follow and end training."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from trellis_contracts.states import FINISHED

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, age, duration, err, out, print_json, print_table, size, styled
from trellis_cli.watch import watch_job

app = typer.Typer(no_args_is_help=True)
Job = Annotated[str, typer.Argument(help="Id of a job, e.g. job_k2n6q4y7c3ta.")]
FOLLOW_PAUSE_S = 0.5


@app.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="Only these states; repeat for several.")] = None,
    recipe: Annotated[str | None, typer.Option()] = None,
    tag: Annotated[str | None, typer.Option()] = None,
    text: Annotated[str | None, typer.Option(help="Part of the name or the id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    as_json: Json = False,
) -> None:
    """Jobs, newest first."""
    page = connect().get("/jobs", state=state, recipe=recipe, tag=tag, text=text, limit=limit)
    if as_json:
        print_json(page["items"])
        return
    rows = [
        (
            job["id"],
            job["name"],
            job["recipe"],
            styled(job["state"]),
            progress_text(job),
            duration(job["eta_s"]),
            age(job["created_at"]),
        )
        for job in page["items"]
    ]
    print_table(("id", "name", "recipe", "state", "steps", "eta", "age"), rows)


def progress_text(job: dict[str, Any]) -> str:
    """Steps done of all, e.g. 12/40."""
    progress = job["progress"]
    total = progress["total_steps"]
    return f"{progress['step']}/{total}" if total else str(progress["step"])


@app.command()
def show(job: Job, as_json: Json = False) -> None:
    """One job: how it is, and why where it failed."""
    client = connect()
    found = client.get(f"/jobs/{job}")
    if as_json:
        print_json(found)
        return
    print_table(
        ("", ""),
        [
            ("job", f"{found['id']}  {found['name']}"),
            ("state", f"{styled(found['state'])}  steps {progress_text(found)}  attempt {found['attempt']}"),
            ("recipe", f"{found['recipe']}  {found['preset'] or ''}"),
            ("model", f"{found['model']['id']}  {found['model']['name'] or ''}"),
            ("dataset", f"{found['dataset']['id']}  {found['dataset']['name'] or ''}"),
            ("page", f"{client.url}/jobs/{found['id']}"),
        ],
    )
    print_failure(found)
    metrics = client.get(f"/jobs/{job}/metric-keys")
    headline = [each for each in metrics if each["key"] in found["headline_metrics"]]
    if headline:
        print_table(
            ("metric", "last", "step"),
            [(each["key"], each["last_value"], each["last_step"]) for each in headline],
        )


def print_failure(job: dict[str, Any]) -> None:
    """The cause first, then what to try, then the last lines."""
    failure = job.get("failure")
    if not failure:
        return
    out.print(f"\n[red]{failure['reason']}[/red] (exit code {failure['exit_code']})", highlight=False)
    if failure.get("hint"):
        out.print(failure["hint"]["en"], highlight=False)
    for line in failure["last_lines"]:
        out.print(f"  {line}", style="dim", markup=False, highlight=False)


def read_request(file: Path) -> dict[str, Any]:
    """A job request from YAML or JSON; `-` reads stdin."""
    text = sys.stdin.read() if str(file) == "-" else file.read_text()
    try:
        request = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Problem(f"{file} is neither YAML nor JSON: {error}", exit_code=ExitCode.USAGE) from error
    if not isinstance(request, dict):
        raise Problem(f"{file} does not hold a job request", exit_code=ExitCode.USAGE)
    return request


File = Annotated[Path, typer.Option("-f", "--file", help="Job request as YAML or JSON; - for stdin.")]


@app.command()
def submit(
    file: File,
    watch: Annotated[bool, typer.Option("--watch", help="Follow it to its end.")] = False,
    as_json: Json = False,
) -> None:
    """Launch a job; the body is that of POST /api/v1/jobs."""
    client = connect()
    job = client.post("/jobs", read_request(file))
    if as_json:
        print_json(job)
    else:
        out.print(f"{job['id']}  {styled(job['state'])}  {client.url}/jobs/{job['id']}", highlight=False)
    if watch:
        raise typer.Exit(finish(watch_job(client, job["id"])))


@app.command()
def preview(file: File, as_json: Json = False) -> None:
    """What a request would run, without launching it."""
    composed = connect().post("/jobs/preview", read_request(file))
    if as_json:
        print_json(composed)
    else:
        out.print(composed["command"], markup=False, highlight=False, soft_wrap=True)
        for kind in ("warnings", "errors"):
            for issue in composed[kind]:
                err.print(f"{kind[:-1]}: {issue['field']}: {issue['message']}", markup=False)
    if composed["errors"]:
        raise typer.Exit(ExitCode.REFUSED)


@app.command()
def watch(job: Job) -> None:
    """Follow a job's progress to its end; the exit code is 0 when it succeeded."""
    raise typer.Exit(finish(watch_job(connect(), job)))


def finish(job: dict[str, Any]) -> ExitCode:
    """Tell how a job ended, as an exit code."""
    print_failure(job)
    return ExitCode.OK if job["state"] == "succeeded" else ExitCode.FAILED


@app.command()
def stop(job: Job) -> None:
    """Ask a job to save a checkpoint and leave."""
    out.print(styled(connect().post(f"/jobs/{job}/stop")["state"]))


@app.command()
def resume(
    job: Job,
    step: Annotated[int | None, typer.Option(help="Checkpoint to continue from; default the newest.")] = None,
) -> None:
    """Continue a stopped or failed job from a checkpoint."""
    found = connect().post(f"/jobs/{job}/resume", {"checkpoint_step": step})
    out.print(f"{styled(found['state'])}  attempt {found['attempt']}")


@app.command()
def delete(job: Job) -> None:
    """Delete a finished job and its files."""
    connect().delete(f"/jobs/{job}")


@app.command()
def checkpoints(job: Job, as_json: Json = False) -> None:
    """The checkpoints of a job."""
    found = connect().get(f"/jobs/{job}/checkpoints")
    if as_json:
        print_json(found)
        return
    print_table(
        ("step", "attempt", "size", "path"),
        [(each["step"], each["attempt"], size(each["size_bytes"]), each["path"]) for each in found],
    )


@app.command()
def logs(
    job: Job,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the job ends.")] = False,
    lines: Annotated[int, typer.Option("-n", min=1, max=5000, help="Last lines to begin with.")] = 200,
) -> None:
    """What a job printed."""
    client = connect()
    page = client.get(f"/jobs/{job}/logs", limit=lines)
    while True:
        for line in page["lines"]:
            out.print(line["text"], markup=False, highlight=False, soft_wrap=True)
        if not follow:
            return
        if not page["lines"] and is_finished(client, job):
            return
        if not page["lines"]:
            time.sleep(FOLLOW_PAUSE_S)
        page = client.get(f"/jobs/{job}/logs", after=page["next_after"])


def is_finished(client: ApiClient, job: str) -> bool:
    """Whether the job's attempt is over."""
    return client.get(f"/jobs/{job}")["state"] in FINISHED
