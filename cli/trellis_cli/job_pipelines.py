"""`trellis job-pipelines`, the page *Workflows*: chained jobs; a stage that did not change is skipped."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.markup import escape

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.following import follow_parts
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, age, out, print_json, print_table, styled
from trellis_cli.resolve_by_name import find_dataset, find_job_pipeline, find_model

app = typer.Typer(no_args_is_help=True)
Called = Annotated[str, typer.Argument(help="ID (jpl_...) or name; the latest if several share the name.")]
Wait = Annotated[bool, typer.Option(help="Wait until it finishes; exits with 0 on success.")]
_UNDER_WAY = ("running", "stopping")


@app.command()
def templates(
    template: Annotated[
        str | None, typer.Argument(help="Print this template as a file to fill in and submit.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List workflow templates.

    trellis job-pipelines templates reasoning > pipeline.yaml
    """
    found = connect().get("/job-pipelines/templates")["items"]
    if template is None:
        if as_json:
            print_json(found)
            return
        rows = [
            (
                each["id"],
                escape(each["title"]["en"]),
                " → ".join(stage["id"] for stage in each["stages"]),
                ", ".join(each["missing_recipes"]),
            )
            for each in found
        ]
        print_table(("id", "title", "stages", "recipes that are missing"), rows)
        return
    one = next((each for each in found if each["id"] == template), None)
    if one is None:
        raise Problem(
            f"no template named '{template}'",
            hint="trellis job-pipelines templates",
            exit_code=ExitCode.REFUSED,
        )
    document = {"name": one["title"]["en"], "stages": [_skeleton(stage) for stage in one["stages"]]}
    if as_json:
        print_json(document)
    else:
        out.print(
            yaml.safe_dump(document, sort_keys=False, allow_unicode=True), markup=False, highlight=False
        )


def _skeleton(stage: dict[str, Any]) -> dict[str, Any]:
    """Return a stage as it is submitted, with placeholders in capitals for what a person must choose."""
    source = stage["model_stage"]
    made: dict[str, Any] = {
        "id": stage["id"],
        "title": stage["title"]["en"],
        "kind": stage["kind"],
        "model": {"stage": source} if source else {"base": "MODEL"},
    }
    if others := [need for need in stage["needs"] if need != source]:
        made["needs"] = others
    if stage["kind"] == "evaluate":
        return {**made, "benchmarks": stage["benchmarks"]}
    made |= {"recipe": stage["recipe"], "dataset": "DATASET", "params": stage["params"]}
    made |= {"preset": stage["preset"]} if stage["preset"] else {}
    return made if stage["exports"] else {**made, "exports": False}


@app.command()
def submit(
    file: Annotated[
        Path,
        typer.Option(
            "-f",
            exists=True,
            dir_okay=False,
            help=("Workflow in YAML or JSON; see docs/agents.md for an example."),
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Overrides the name in the file.")] = None,
    start: Annotated[bool, typer.Option(help="Start right away.")] = True,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Validate a workflow and run its stages in dependency order."""
    client = connect()
    document = _read_document(client, file)
    body = {**document, "start": start, **({"name": name} if name else {})}
    made = client.post("/job-pipelines", body)
    follow_and_tell(client, made, wait=wait and start, as_json=as_json)


def _read_document(client: ApiClient, file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Problem(f"{file} is neither YAML nor JSON: {error}", exit_code=ExitCode.USAGE) from error
    stages = content.get("stages") if isinstance(content, dict) else None
    if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
        raise Problem(f"{file} contains no list of stages", exit_code=ExitCode.USAGE)
    return {**content, "stages": [_with_ids(client, stage) for stage in stages]}


def _with_ids(client: ApiClient, stage: dict[str, Any]) -> dict[str, Any]:
    """Replace the names of models and datasets in a stage with their ids."""
    made = dict(stage)
    for field in ("dataset", "validation_dataset"):
        if isinstance(called := made.get(field), str):
            made[field] = find_dataset(client, called)
    model = made.get("model")
    if isinstance(model, dict) and isinstance(model.get("base"), str):
        made["model"] = {**model, "base": find_model(client, model["base"])}
    if isinstance(orders := made.get("benchmarks"), list):
        made["benchmarks"] = [_order_with_id(client, order) for order in orders]
    return made


def _order_with_id(client: ApiClient, order: Any) -> Any:
    """Replace the dataset name in a custom benchmark's order with the dataset's id."""
    if not isinstance(order, dict) or not isinstance(called := order.get("dataset"), str):
        return order
    return {**order, "dataset": find_dataset(client, called)}


@app.command("list")
def list_job_pipelines(as_json: Json = False) -> None:
    """List workflows, newest first."""
    found = list(connect().pages("/job-pipelines"))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["id"],
            escape(each["name"]),
            styled(each["state"]),
            " ".join(f"{stage['id']}:{styled(stage['state'])}" for stage in each["stages"]),
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "state", "stages", "age"), rows)


@app.command()
def show(pipeline: Called, wait: Wait = False, as_json: Json = False) -> None:
    """Show a workflow and its stages."""
    client = connect()
    found = client.get(f"/job-pipelines/{find_job_pipeline(client, pipeline)}")
    follow_and_tell(client, found, wait=wait, as_json=as_json)


@also_known_as(app, "start", now="resume")
@app.command()
def resume(pipeline: Called, wait: Wait = False, as_json: Json = False) -> None:
    """Start or resume a workflow; unchanged stages are skipped."""
    client = connect()
    found = client.post(f"/job-pipelines/{find_job_pipeline(client, pipeline)}/start")
    follow_and_tell(client, found, wait=wait, as_json=as_json)


@app.command()
def stop(pipeline: Called, wait: Wait = False, as_json: Json = False) -> None:
    """Stop a workflow: no new stages start, and running jobs are stopped."""
    client = connect()
    found = client.post(f"/job-pipelines/{find_job_pipeline(client, pipeline)}/stop")
    if wait:
        found = _follow(client, found["id"])
    _print(found, as_json=as_json)


@app.command()
def rerun(
    pipeline: Called,
    stage: Annotated[str, typer.Argument(help="Stage ID.")],
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Rerun a stage and everything that depends on it, even if nothing changed."""
    client = connect()
    found = client.post(f"/job-pipelines/{find_job_pipeline(client, pipeline)}/stages/{stage}/rerun")
    follow_and_tell(client, found, wait=wait, as_json=as_json)


@app.command()
def delete(pipeline: Called) -> None:
    """Delete a workflow that isn't running; its jobs and models are kept."""
    client = connect()
    client.delete(f"/job-pipelines/{find_job_pipeline(client, pipeline)}")


def follow_and_tell(client: ApiClient, found: dict[str, Any], *, wait: bool, as_json: bool) -> None:
    """Print a pipeline, at its end where ``wait``; ``Problem`` where it then did not succeed."""
    if wait:
        found = _follow(client, found["id"])
    _print(found, as_json=as_json)
    if wait and found["state"] != "succeeded":
        reasons = [f"{stage['id']}: {stage['reason']}" for stage in found["stages"] if stage["reason"]]
        raise Problem(
            f"the workflow is {found['state']}{': ' if reasons else ''}{'; '.join(reasons)}",
            exit_code=ExitCode.FAILED,
        )


def _follow(client: ApiClient, pipeline_id: str) -> dict[str, Any]:
    """Wait for its end and tell every change of a stage."""
    return follow_parts(
        client,
        f"/job-pipelines/{pipeline_id}",
        under_way=_UNDER_WAY,
        parts=lambda found: (
            (stage["id"], stage["state"], f"{stage['id']}: {styled(stage['state'])}")
            for stage in found["stages"]
        ),
        progress=lambda found: ", ".join(filter(None, map(_progress, found["stages"]))) or found["state"],
        again=f"trellis job-pipelines show {pipeline_id} --wait",
    )


def _progress(stage: dict[str, Any]) -> str | None:
    job = stage["export_job"] or stage["job"]
    if stage["state"] != "running" or job is None or job["progress"] is None:
        return None
    progress = job["progress"]
    total = f"/{progress['total_steps']}" if progress["total_steps"] else ""
    return f"{stage['id']} {progress['phase'] or job['state']} {progress['step']}{total}"


def _print(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    out.print(
        f"{found['id']}  [bold]{escape(found['name'])}[/bold]  {styled(found['state'])}", highlight=False
    )
    rows = [
        (
            stage["id"],
            styled(stage["state"]),
            ", ".join(stage["needs"]),
            stage["recipe"] or stage["kind"],
            stage["job"]["id"] if stage["job"] else "",
            escape(stage["model"]["name"] or stage["model"]["id"]) if stage["model"] else "",
            escape(stage["reason"] or ""),
        )
        for stage in found["stages"]
    ]
    print_table(("stage", "state", "needs", "recipe", "job", "model", "reason"), rows)
