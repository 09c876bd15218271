"""`trellis jobs`: launch, follow and end training."""

import time
from typing import Annotated, Any

import typer
from trellis_contracts.states import FINISHED

from trellis_cli import (
    checkpoints,
    job_comparison,
    job_editing,
    job_event_files,
    job_rollouts,
    job_timing,
    script_import,
)
from trellis_cli.alarms import alarm_mark, print_alarms
from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode
from trellis_cli.job_preview import preview_request, warn_before_launch
from trellis_cli.job_requests import (
    Choice,
    Columns,
    Dataset,
    File,
    Model,
    Name,
    Preset,
    ReadAs,
    Recipe,
    ReportTo,
    Settings,
    Validation,
    make_request,
)
from trellis_cli.output import Json, age, duration, out, print_json, print_table, styled
from trellis_cli.resolve_by_name import find_environment, find_job, find_workflow, name_to_ids
from trellis_cli.watch import watch_job

app = typer.Typer(no_args_is_help=True)
checkpoints.register(app)
job_editing.register(app)
job_comparison.register(app)
script_import.register(app)
job_event_files.register(app)
job_rollouts.register(app)
job_timing.register(app)
Job = Annotated[str, typer.Argument(help="ID (job_...) or name; the latest if several share the name.")]
OneJob = Annotated[str, typer.Argument(help="ID (job_...) or unique name.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it finishes; exits with 0 on success.")]
OldWatch = Annotated[bool, typer.Option("--watch", hidden=True)]
FOLLOW_PAUSE_S = 0.5


@app.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="Filter by state; repeatable.")] = None,
    recipe: Annotated[str | None, typer.Option()] = None,
    tag: Annotated[str | None, typer.Option()] = None,
    text: Annotated[str | None, typer.Option(help="Search names, IDs and tags.")] = None,
    kind: Annotated[str | None, typer.Option(help="train, export or evaluate; default: all.")] = None,
    starred: Annotated[
        bool | None, typer.Option("--starred/--not-starred", help="Only starred or unstarred jobs.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            help="created, name, recipe, model, dataset, state, duration, cost, progress, starred, tags, "
            "sweep, group, metric_last or metric_best."
        ),
    ] = None,
    rising: Annotated[bool, typer.Option("--rising", help="Sort ascending; default: descending.")] = False,
    metric: Annotated[
        str | None, typer.Option(help="Metric to show and sort by; default: the headline metric.")
    ] = None,
    has_alarms: Annotated[
        bool | None, typer.Option("--alarms/--no-alarms", help="Only jobs with or without active alarms.")
    ] = None,
    environment: Annotated[str | None, typer.Option(help="Filter by environment (name or ID).")] = None,
    workflow: Annotated[
        str | None, typer.Option("--agent-code", "--workflow", help="Filter by agent code (name or ID).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    as_json: Json = False,
) -> None:
    """List jobs, newest first or sorted by a column."""
    client = connect()
    wanted = {
        "state": state,
        "recipe": recipe,
        "tag": tag,
        "text": text,
        "has_alarms": has_alarms,
        "kind": kind,
        "starred": starred,
        "sort": sort,
        "order": "asc" if rising else None,
        "metric": metric,
    }
    place = find_environment(client, environment) if environment else None
    file = find_workflow(client, workflow) if workflow else None
    page = client.get("/jobs", **wanted, environment=place, workflow=file, limit=limit)
    if as_json:
        print_json(page["items"])
        return
    rows = [
        (
            job["id"],
            ("★ " if job["is_starred"] else "") + job["name"],
            job["recipe"],
            styled(job["state"]) + alarm_mark(job),
            progress_text(job),
            metric_text(job),
            duration(job["eta_s"]),
            age(job["created_at"]),
        )
        for job in page["items"]
    ]
    print_table(("id", "name", "recipe", "state", "steps", "metric", "eta", "age"), rows)


def metric_text(job: dict[str, Any]) -> str:
    """Format a listed job's metric with its newest and its best value."""
    metric = job["metric"]
    if metric is None:
        return ""
    last, best = (
        f"{value:.4g}" if value is not None else "nan" for value in (metric["last"], metric["best"])
    )
    return f"{metric['key']} {last} (best {best})"


def progress_text(job: dict[str, Any]) -> str:
    """Format the completed and the total steps, as in 12/40."""
    progress = job["progress"]
    total = progress["total_steps"]
    return f"{progress['step']}/{total}" if total else str(progress["step"])


@app.command()
def show(job: Job, as_json: Json = False) -> None:
    """Show a job's status, and why it failed if it did."""
    client = connect()
    job = find_job(client, job)
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
            *describe_data(found),
            *([("tags", " ".join(found["tags"]))] if found["tags"] else []),
            *describe_report(found),
            ("page", f"{client.url}/jobs/{found['id']}"),
        ],
    )
    if found["notes"]:
        out.print(f"\n{found['notes']}\n", markup=False, highlight=False)
    print_failure(found)
    print_alarms(client, found)
    metrics = client.get(f"/jobs/{job}/metric-keys")
    headline = [each for each in metrics if each["key"] in found["headline_metrics"]]
    if headline:
        print_table(
            ("metric", "last", "step"),
            [(each["key"], each["last_value"], each["last_step"]) for each in headline],
        )


def describe_data(job: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe what a training learns from, or what an export writes and registers."""
    if job["dataset"]:
        return [("dataset", f"{job['dataset']['id']}  {job['dataset']['name'] or ''}")]
    export, model = job["export"], job["exported_model"]
    rows = [("checkpoint", f"step {export['step']} of {export['source']['id']}  {export['source']['name']}")]
    return [*rows, ("exported", f"{model['id']}  {model['name'] or ''}")] if model else rows


def describe_report(job: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe where the metrics are also sent, or why they cannot be."""
    report = job["report_to"]
    if report is None:
        return []
    problem = f"  can't send metrics: {report['problem']}" if report["problem"] else ""
    return [("W&B", f"{report['url'] or report['wandb']['project']}{problem}")]


def print_failure(job: dict[str, Any]) -> None:
    """Print the cause of a failure, then what to try, then the last log lines."""
    failure = job.get("failure")
    if not failure:
        return
    out.print(f"\n[red]{failure['reason']}[/red] (exit code {failure['exit_code']})", highlight=False)
    if failure.get("hint"):
        out.print(failure["hint"]["en"], highlight=False)
    for line in failure["last_lines"]:
        out.print(f"  {line}", style="dim", markup=False, highlight=False)


@app.command()
def submit(
    file: File = None,
    recipe: Recipe = None,
    model: Model = None,
    dataset: Dataset = None,
    validation_dataset: Validation = None,
    name: Name = None,
    preset: Preset = None,
    settings: Settings = None,
    column: Columns = None,
    data_format: ReadAs = None,
    report_to: ReportTo = None,
    export_as: Annotated[
        str | None, typer.Option(help="If the job succeeds, export a checkpoint as a model with this name.")
    ] = None,
    best_by: Annotated[
        str | None, typer.Option(help="Export the best checkpoint by this metric; default: the last.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate and show what would run, without launching anything.")
    ] = False,
    wait: Wait = False,
    watch: OldWatch = False,
    as_json: Json = False,
) -> None:
    """Launch a job from a file or from options; the file has the format of POST /api/v1/jobs.

    trellis jobs submit --recipe sft --model starter --dataset rows --set learning_rate=1e-4 --wait

    Options override the file. Refer to models and datasets by name or ID. With --dry-run, nothing is
    launched; exits with 4 if the job would be refused.
    """
    client = connect()
    choice = Choice(
        recipe, model, dataset, validation_dataset, name, preset, settings, column, data_format, report_to
    )
    request = name_to_ids(client, make_request(file, choice))
    if export_as is not None:
        request["export_as"] = {"name": export_as, "best_by": best_by}
    if dry_run:
        preview_request(client, request, as_json=as_json)
        return
    warn_before_launch(client, request)
    job = client.post("/jobs", request)
    print_job(client, job, as_json=as_json)
    follow(client, job, wait=wait or watch)


@app.command()
def preview(
    file: File = None,
    recipe: Recipe = None,
    model: Model = None,
    dataset: Dataset = None,
    validation_dataset: Validation = None,
    name: Name = None,
    preset: Preset = None,
    settings: Settings = None,
    column: Columns = None,
    data_format: ReadAs = None,
    report_to: ReportTo = None,
    as_json: Json = False,
) -> None:
    """Show what a job would run without launching it. Takes the same options as `submit`."""
    client = connect()
    choice = Choice(
        recipe, model, dataset, validation_dataset, name, preset, settings, column, data_format, report_to
    )
    preview_request(client, name_to_ids(client, make_request(file, choice)), as_json=as_json)


@app.command()
def watch(job: Job) -> None:
    """Follow a job until it finishes; exits with 0 on success."""
    client = connect()
    raise typer.Exit(finish(watch_job(client, find_job(client, job))))


def finish(job: dict[str, Any]) -> ExitCode:
    """Tell how a job ended, as an exit code."""
    print_failure(job)
    return ExitCode.OK if job["state"] == "succeeded" else ExitCode.FAILED


@app.command()
def stop(
    job: OneJob,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has stopped.")] = False,
    as_json: Json = False,
) -> None:
    """Stop a job: it saves a checkpoint and exits."""
    client = connect()
    found = client.post(f"/jobs/{find_job(client, job, must_be_one=True)}/stop")
    if wait:
        found = watch_job(client, found["id"])
    _print(found, styled(found["state"]), as_json=as_json)


@app.command()
def resume(
    job: OneJob,
    step: Annotated[int | None, typer.Option(help="Checkpoint to resume from; default: the latest.")] = None,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Resume a stopped or failed job from a checkpoint."""
    client = connect()
    called = find_job(client, job, must_be_one=True)
    found = client.post(f"/jobs/{called}/resume", {"checkpoint_step": step})
    _print(found, styled(found["state"]), f"attempt {found['attempt']}", as_json=as_json)
    follow(client, found, wait=wait)


def _print(job: dict[str, Any], *told: str, as_json: bool) -> None:
    if as_json:
        print_json(job)
    else:
        out.print("  ".join(told), highlight=False)


def print_job(client: ApiClient, job: dict[str, Any], *, as_json: bool) -> None:
    """Print a job that was launched, with its page."""
    _print(job, job["id"], styled(job["state"]), f"{client.url}/jobs/{job['id']}", as_json=as_json)


def follow(client: ApiClient, job: dict[str, Any], *, wait: bool) -> None:
    """Wait for a job's end, if that is wanted, and leave with its exit code."""
    if wait:
        raise typer.Exit(finish(watch_job(client, job["id"])))


@app.command()
def delete(job: OneJob) -> None:
    """Delete a finished job and its files."""
    client = connect()
    client.delete(f"/jobs/{find_job(client, job, must_be_one=True)}")


@app.command()
def logs(
    job: Job,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow until the job ends.")] = False,
    lines: Annotated[
        int, typer.Option("-n", min=1, max=5000, help=("Number of lines to show from the end."))
    ] = 200,
) -> None:
    """Show a job's output."""
    client = connect()
    job = find_job(client, job)
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
    """Return whether the job's attempt is over."""
    return client.get(f"/jobs/{job}")["state"] in FINISHED
