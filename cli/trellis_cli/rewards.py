"""`trellis rewards`: what responses can earn, own reward files, and dry runs before a launch."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, age, err, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_dataset, find_job, find_reward_file
from trellis_cli.waiting import read_patiently

app = typer.Typer(no_args_is_help=True)
files = typer.Typer(no_args_is_help=True)
app.add_typer(files, name="files", help="Custom reward functions: Python files with score(...).")

UploadedFile = Annotated[
    str, typer.Argument(help="ID (rwf_...) or name; the latest if several share the name.")
]
OneFile = Annotated[str, typer.Argument(help="ID (rwf_...) or unique name.")]
POLL_S = 0.5
FINISHED = frozenset({"succeeded", "failed", "cancelled"})


@app.command("list")
def list_rewards(as_json: Json = False) -> None:
    """List all rewards."""
    kinds = connect().get("/rewards")["items"]
    if as_json:
        print_json(kinds)
        return
    rows = [
        (
            each["name"],
            each["title"]["en"],
            describe_range(each),
            ", ".join(option["name"] for option in each["options"]),
            each["unavailable"]["en"] if each["unavailable"] else "",
        )
        for each in kinds
    ]
    print_table(("name", "title", "returns", "options", "unavailable here"), rows)


def describe_range(kind: dict[str, Any]) -> str:
    """Format the lowest and the highest value."""
    if kind["lowest"] is None or kind["highest"] is None:
        return "any number"
    return f"{kind['lowest']:g} to {kind['highest']:g}"


@app.command()
def show(name: str, as_json: Json = False) -> None:
    """Show a reward and its options."""
    kinds = connect().get("/rewards")["items"]
    kind = next((each for each in kinds if each["name"] == name), None)
    if kind is None:
        known = ", ".join(each["name"] for each in kinds)
        raise Problem(f"no reward named '{name}'", hint=f"rewards: {known}", exit_code=ExitCode.REFUSED)
    if as_json:
        print_json(kind)
        return
    out.print(f"[bold]{kind['title']['en']}[/bold]: {kind['help']['en']}", highlight=False)
    if kind["unavailable"]:
        out.print(f"[yellow]{kind['unavailable']['en']}[/yellow]", highlight=False)
    rows = [
        (
            option["name"],
            ", ".join(option["choices"]) or option["type"],
            "required" if option["is_required"] else json.dumps(option["default"]),
            option["help"]["en"],
        )
        for option in kind["options"]
    ]
    if rows:
        print_table(("option", "type", "default", "meaning"), rows)


@app.command("dry-run")
def dry_run(
    dataset: Annotated[str, typer.Argument(help="ID (ds_...) or name of the dataset.")],
    reward: Annotated[
        list[str] | None,
        typer.Option(help=("Reward name such as `math`, or JSON with name, weight and options.")),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", exists=True, dir_okay=False, help="List of rewards in YAML or JSON."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, max=256, help="Number of rows to sample.")] = 64,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    job: Annotated[str | None, typer.Option(help="Also score this job's recorded responses.")] = None,
    step: Annotated[int | None, typer.Option(min=0, help="Step of that job; default: the latest.")] = None,
    as_json: Json = False,
) -> None:
    """Test rewards on real rows with synthetic responses: reference, empty, truncated, repeated and more."""
    client = connect()
    body = {
        "rewards": read_rewards(reward or [], file),
        "dataset": find_dataset(client, dataset),
        "rows": rows,
    }
    scored = {"job": find_job(client, job) if job else None, "step": step}
    started = client.post("/rewards/dry-runs", {**body, "seed": seed, **scored})
    found = follow(client, started["id"])
    if as_json:
        print_json(found)
    else:
        print_report(found)
    if found["state"] != "succeeded":
        reason = f": {found['reason']}" if found["reason"] else ""
        raise Problem(f"the dry run has {found['state']}{reason}", exit_code=ExitCode.FAILED)


def read_rewards(given: list[str], file: Path | None) -> list[Any]:
    """Read the rewards from the options and the file."""
    terms = [parse_term(text) if text.lstrip().startswith("{") else {"name": text} for text in given]
    if file is not None:
        try:
            content = yaml.safe_load(file.read_text())
        except yaml.YAMLError as error:
            raise Problem(f"{file} is neither YAML nor JSON: {error}", exit_code=ExitCode.USAGE) from error
        listed = content.get("rewards") if isinstance(content, dict) else content
        if not isinstance(listed, list):
            raise Problem(f"{file} is not a list of rewards", exit_code=ExitCode.USAGE)
        terms += listed
    if not terms:
        raise Problem(
            "no reward specified", hint="--reward math, or -f rewards.yaml", exit_code=ExitCode.USAGE
        )
    return terms


def parse_term(text: str) -> Any:
    """Parse a reward given as JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Problem(f"--reward {text} is not valid JSON: {error}", exit_code=ExitCode.USAGE) from error


def follow(client: ApiClient, dry_run_id: str) -> dict[str, Any]:
    """Wait for the end of a dry run and show how far it is; Ctrl-C cancels it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    try:
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task("queued", total=None)
            while True:
                found = read_patiently(client, f"/rewards/dry-runs/{dry_run_id}")
                progress = found["progress"]
                bar.update(
                    task,
                    description=found["state"],
                    completed=progress["done"],
                    total=progress["total"] or None,
                )
                if found["state"] in FINISHED:
                    return found
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        client.post(f"/rewards/dry-runs/{dry_run_id}/cancel")
        raise


def print_report(found: dict[str, Any]) -> None:
    """Print the probes as a table, then the warnings."""
    result = found["result"]
    if result is None:
        return
    rows = [
        (
            each["title"]["en"],
            each["count"],
            f"{each['mean']:.3g}",
            f"{each['minimum']:.3g} to {each['maximum']:.3g}",
            f"{each['correct_share']:.0%}",
            sparkline(each["histogram"]),
            each["error_count"] or "",
            f"{each['latency']['p50_ms']:.3g} / {each['latency']['p95_ms']:.3g}",
        )
        for each in result["probes"]
    ]
    headers = ("probe", "rows", "mean", "range", "correct", "scores", "errors", "ms (p50 / p95)")
    print_table(headers, rows)
    if result["cost"]:
        out.print(f"judges cost ${result['cost']:.4f}", highlight=False)
    for warning in result["warnings"]:
        out.print(f"[yellow]{warning['code']}[/yellow]: {warning['message']['en']}", highlight=False)
    if not result["warnings"]:
        out.print("[green]no problems found[/green]")


def sparkline(counts: list[int]) -> str:
    """Draw a histogram in one line of text."""
    highest = max(counts, default=0) or 1
    marks = " ▁▂▃▄▅▆▇█"
    return "".join(marks[-(-count * (len(marks) - 1) // highest)] for count in counts)


@also_known_as(files, "add", now="upload")
@files.command("upload")
def upload_file(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Python file with score(...).")],
    name: Annotated[str | None, typer.Option(help="Display name; default: the file name.")] = None,
    as_json: Json = False,
) -> None:
    """Upload a reward function. Its syntax is checked; it only runs in a sandbox."""
    try:
        code = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Problem(f"{file} is not UTF-8 text", exit_code=ExitCode.USAGE) from error
    found = connect().post("/rewards/files", {"name": name or file.stem, "code": code})
    if as_json:
        print_json(found)
        return
    out.print(f"{found['id']}  {found['name']}", highlight=False)


@files.command("list")
def list_files(as_json: Json = False) -> None:
    """List uploaded files, newest first."""
    found = list(connect().pages("/rewards/files"))
    if as_json:
        print_json(found)
        return
    rows = [
        (each["id"], each["name"], size(each["size_bytes"]), each["sha256"][:12], age(each["created_at"]))
        for each in found
    ]
    print_table(("id", "name", "size", "sha256", "age"), rows)


@files.command("show")
def show_file(file: UploadedFile, as_json: Json = False) -> None:
    """Show the code of an uploaded file."""
    client = connect()
    found = client.get(f"/rewards/files/{find_reward_file(client, file)}")
    if as_json:
        print_json(found)
        return
    print(found["code"])


@also_known_as(files, "remove", now="delete")
@files.command("delete")
def delete_file(file: OneFile) -> None:
    """Delete an uploaded file."""
    client = connect()
    client.delete(f"/rewards/files/{find_reward_file(client, file, must_be_one=True)}")


@app.command("dry-runs")
def list_dry_runs(as_json: Json = False) -> None:
    """List dry runs, newest first."""
    found = list(connect().pages("/rewards/dry-runs"))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["id"],
            styled(each["state"]),
            ", ".join(term["name"] for term in each["rewards"]),
            each["dataset"]["name"],
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "state", "rewards", "dataset", "age"), rows)
