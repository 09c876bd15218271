"""`trellis pipelines`: what cleans datasets on the platform (files of this machine: `trellis data run`)."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, age, duration, err, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_dataset, find_pipeline, find_pipeline_run
from trellis_cli.task_bar import TaskBar
from trellis_cli.waiting import WaitForEnd, wait_for_end, wait_for_task

app = typer.Typer(no_args_is_help=True)
Version = Annotated[str | None, typer.Option(help="Version, branch or tag; default: main.")]
Run = Annotated[str, typer.Argument(help="Run ID (dtk_...) or the name of its pipeline.")]
Wait = Annotated[bool, typer.Option(help="Wait until it finishes; exits with 0 on success.")]


@app.command()
def operators(
    operator: Annotated[str | None, typer.Argument(help="Operator ID, to show its parameters.")] = None,
    as_json: Json = False,
) -> None:
    """List the operators a data pipeline can use."""
    found = connect().get("/pipelines/operators")["items"]
    if operator is None:
        if as_json:
            print_json(found)
            return
        rows = [(each["id"], each["group"], each["title"]["en"], each["help"]["en"]) for each in found]
        print_table(("id", "group", "title", "what it does"), rows)
        return
    one = next((each for each in found if each["id"] == operator), None)
    if one is None:
        raise Problem(
            f"no operator named '{operator}'",
            hint="trellis pipelines operators",
            exit_code=ExitCode.REFUSED,
        )
    if as_json:
        print_json(one)
        return
    out.print(f"{one['title']['en']}: {one['help']['en']}", markup=False, highlight=False)
    rows = [
        (name, _type_of(each), escape(str(each.get("default", "required"))), _help_of(each))
        for name, each in one["params_schema"].get("properties", {}).items()
    ]
    print_table(("parameter", "type", "default", "meaning"), rows)


def _type_of(schema: dict[str, Any]) -> str:
    choices = schema.get("enum")
    if choices:
        return escape(", ".join(map(str, choices)))
    kinds = schema.get("anyOf") or [schema]
    return " or ".join(dict.fromkeys(str(each.get("type", "value")) for each in kinds))


def _help_of(schema: dict[str, Any]) -> str:
    return escape(schema.get("help_texts", {}).get("en") or schema.get("description", ""))


@app.command("list")
def list_pipelines(
    runs: Annotated[bool, typer.Option("--runs", help="List runs instead of saved pipelines.")] = False,
    dataset: Annotated[str | None, typer.Option(help="With --runs: only runs on this dataset.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="With --runs: max number of runs.")] = 50,
    as_json: Json = False,
) -> None:
    """List saved pipelines or, with --runs, pipeline runs; newest first."""
    client = connect()
    if dataset and not runs:
        raise Problem("--dataset requires --runs", exit_code=ExitCode.USAGE)
    if runs:
        chosen = find_dataset(client, dataset) if dataset else None
        _print_runs(client.get("/pipelines/runs", dataset=chosen, limit=limit)["items"], as_json=as_json)
        return
    found = list(client.pages("/pipelines"))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["id"],
            escape(each["name"]),
            each["version"],
            len(each["pipeline"]["steps"]),
            age(each["updated_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "version", "steps", "age"), rows)


def _print_runs(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["task"]["id"],
            escape(each["pipeline"]["name"]),
            styled(each["task"]["state"]),
            escape(each["task"]["dataset_name"] or each["task"]["dataset"]),
            (each["task"]["made_version"] or "")[:12],
            age(each["task"]["created_at"]),
        )
        for each in found
    ]
    print_table(("run", "pipeline", "state", "dataset", "made", "age"), rows)


PipelineFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="Pipeline YAML; see docs/data.md.")
]


@app.command()
def save(
    file: PipelineFile,
    message: Annotated[str, typer.Option("--message", "-m", help="What changed in this version.")] = "",
    as_json: Json = False,
) -> None:
    """Save a pipeline under its name, as a new version if the name exists."""
    client = connect()
    body = {"pipeline": read_pipeline(client, file), "message": message}
    known = find_pipeline(client, body["pipeline"]["name"])
    saved = client.post(f"/pipelines/{known}/versions" if known else "/pipelines", body)
    if as_json:
        print_json(saved)
    else:
        out.print(f"{saved['id']}  {escape(saved['name'])}  version {saved['version']}", highlight=False)


def read_pipeline(client: ApiClient, file: Path, **against: Any) -> Any:
    """Read and validate a pipeline file; report every problem with its position."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Problem(f"{file} is not UTF-8 text", exit_code=ExitCode.USAGE) from error
    checked = client.post("/pipelines/validate", {"yaml": text, **against})
    if checked["problems"]:
        lines = (f"  {each['field']}: {each['message']}" for each in checked["problems"])
        raise Problem("\n".join((f"{file} cannot be run:", *lines)), exit_code=ExitCode.REFUSED)
    return checked["pipeline"]


@also_known_as(app, "run", now="submit")
@app.command()
def submit(
    pipeline: Annotated[str, typer.Argument(help="YAML file, or ID or name of a saved pipeline.")],
    dataset: Annotated[str, typer.Option(help="ID (ds_...) or name of the dataset.")],
    version: Version = None,
    split: Annotated[
        list[str] | None, typer.Option(help="Only this split; repeatable. Default: all.")
    ] = None,
    into: Annotated[
        str,
        typer.Option(
            help=("version: a new version of the dataset; dataset:NAME: a new dataset; none: report only.")
        ),
    ] = "version",
    branch: Annotated[
        str, typer.Option(help=("With --into version: target branch; created if it doesn't exist."))
    ] = "main",
    message: Annotated[str, typer.Option("--message", "-m", help="Message of the new version.")] = "",
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Additional judge from TRELLIS_JUDGES to allow; judges named in steps are always allowed."
        ),
    ] = None,
    max_judge_cost: Annotated[float, typer.Option(min=0.0, help="Budget per judge, in US dollars.")] = 1.0,
    resource: Annotated[
        list[str] | None,
        typer.Option(help="Additional input as NAME=DATASET\\[@VERSION]; repeatable."),
    ] = None,
    executor: Annotated[
        Literal["processes", "ray"], typer.Option(help="ray: run on the whole cluster.")
    ] = "processes",
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Run a data pipeline on a dataset and print what each step did.

    trellis pipelines submit clean.yaml --dataset chats
    trellis pipelines submit clean.yaml --dataset chats --version v1 --into dataset:clean-chats
    """
    output = parse_output(into, branch, message)
    client = connect()
    dataset_id = find_dataset(client, dataset)
    resources = dict(_parse_resource(client, each) for each in resource or ())
    body = {
        **_choose_pipeline(client, pipeline, dataset=dataset_id, version=version, resources=resources),
        "dataset": dataset_id,
        "version": version,
        "splits": split or None,
        "output": output,
        "judges": judge or [],
        "max_judge_cost": max_judge_cost,
        "resources": resources,
        "executor": executor,
    }
    started = client.post("/pipelines/runs", body)
    if not wait:
        _print_run(started, as_json=as_json)
        return
    _print_run(follow(client, started["task"]["id"]), as_json=as_json)


def parse_output(into: str, branch: str, message: str) -> dict[str, Any]:
    """Parse where the rows go into the request's ``output``."""
    kind, _, name = into.partition(":")
    if branch != "main" and kind != "version":
        raise Problem("--branch requires --into version", exit_code=ExitCode.USAGE)
    if into == "version":
        return {"kind": "version", "branch": branch, "message": message}
    if kind == "dataset" and name:
        return {"kind": "dataset", "name": name, "description": message}
    if into == "none":
        return {"kind": "none"}
    raise Problem(f"--into takes version, dataset:NAME or none, not '{into}'", exit_code=ExitCode.USAGE)


def _choose_pipeline(client: ApiClient, called: str, **against: Any) -> dict[str, Any]:
    if Path(called).is_file():
        return {"pipeline": read_pipeline(client, Path(called), **against)}
    found = find_pipeline(client, called)
    if found is None:
        raise Problem(
            f"'{called}' is neither a file nor a saved pipeline",
            hint="trellis pipelines list",
            exit_code=ExitCode.REFUSED,
        )
    return {"pipeline_id": found}


def _parse_resource(client: ApiClient, text: str) -> tuple[str, dict[str, str]]:
    name, equals, place = text.partition("=")
    dataset, _, version = place.partition("@")
    if not (name and equals and dataset):
        raise Problem(f"--resource takes NAME=DATASET[@VERSION], not '{text}'", exit_code=ExitCode.USAGE)
    return name, {"dataset_id": find_dataset(client, dataset), "version": version or "main"}


def follow(client: ApiClient, run_id: str) -> dict[str, Any]:
    """Wait for the end of a run and show how far it is; Ctrl-C stops looking, the run goes on."""
    try:
        with TaskBar() as bar:
            wait_for_task(client, run_id, look=bar.show)
    except KeyboardInterrupt:
        err.print(f"still running: trellis pipelines show {run_id}; trellis pipelines stop {run_id}")
        raise
    return dict(client.get(f"/pipelines/runs/{run_id}"))


@app.command()
def show(
    called: Annotated[str, typer.Argument(metavar="WHICH", help="Run (dtk_...), or pipeline ID or name.")],
    as_json: Json = False,
) -> None:
    """Show a run's report, or a saved pipeline as YAML."""
    client = connect()
    if called.startswith("dtk_"):
        _print_run(client.get(f"/pipelines/runs/{called}"), as_json=as_json)
        return
    found = find_pipeline(client, called)
    if found is None:
        raise Problem(
            f"no pipeline named '{called}'", hint="trellis pipelines list", exit_code=ExitCode.REFUSED
        )
    saved = client.get(f"/pipelines/{found}")
    if as_json:
        print_json(saved)
    else:
        out.print(saved["yaml"].rstrip(), markup=False, highlight=False, soft_wrap=True)


@also_known_as(app, "cancel", now="stop")
@app.command()
def stop(run: Run, wait: WaitForEnd = False, as_json: Json = False) -> None:
    """Stop a queued or running run; `resume` continues where it stopped."""
    client = connect()
    called = find_pipeline_run(client, run, in_states=("queued", "running"))
    task = client.post(f"/data-tasks/{called}/cancel")
    if wait:
        task = wait_for_end(client, f"/data-tasks/{called}")
    if as_json:
        print_json(task)
    else:
        out.print(styled(task["state"]))


@app.command()
def resume(run: Run, wait: Wait = True, as_json: Json = False) -> None:
    """Resume a failed or stopped run where it stopped."""
    client = connect()
    called = find_pipeline_run(client, run, in_states=("failed", "cancelled"))
    client.post(f"/data-tasks/{called}/retry")
    found = follow(client, called) if wait else client.get(f"/pipelines/runs/{called}")
    _print_run(found, as_json=as_json)


@app.command()
def delete(
    pipeline: Annotated[str, typer.Argument(help="ID (pip_...) or name of a saved pipeline.")],
) -> None:
    """Delete a saved pipeline; its runs are kept."""
    client = connect()
    found = find_pipeline(client, pipeline)
    if found is None:
        raise Problem(
            f"no pipeline named '{pipeline}'", hint="trellis pipelines list", exit_code=ExitCode.REFUSED
        )
    client.delete(f"/pipelines/{found}")


def _print_run(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    task, report = found["task"], found["report"]
    made = (
        f"  {task['made_dataset'] or task['dataset']}@{task['made_version'][:12]}"
        if task["made_version"]
        else ""
    )
    out.print(
        f"{task['id']}  {escape(found['pipeline']['name'])}  {styled(task['state'])}{made}", highlight=False
    )
    if task["reason"]:
        out.print(f"[red]{escape(task['reason'])}[/red]", highlight=False, soft_wrap=True)
    if report:
        print_report(report)


def print_report(report: dict[str, Any]) -> None:
    """Print the funnel: rows before and after every step, and why rows were dropped."""
    rows = [
        (
            escape(step["name"]),
            f"{step['rows_in']:,}",
            f"{bar['rows']:,}",
            f"{step['changed']:,}",
            f"{step['dropped']:,}",
            escape(", ".join(f"{reason} {count:,}" for reason, count in step["reasons"].items())),
            duration(step["seconds"]),
        )
        for step, bar in zip(report["steps"], report["funnel"][1:], strict=True)
    ]
    print_table(("step", "rows in", "rows out", "changed", "dropped", "why", "time"), rows)
    splits = ", ".join(f"{split} {count:,}" for split, count in report["outputs"].items())
    out.print(
        f"{report['rows_in']:,} rows in, {report['rows_out']:,} out ({splits}), {report['seconds']:.1f} s, "
        f"at most {size(report['peak_memory_bytes'])}",
        highlight=False,
    )
