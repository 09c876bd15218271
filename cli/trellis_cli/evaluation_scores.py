"""`trellis evaluations compare | leaderboard | matrix | history`: scores beside each other."""

import re
from typing import Annotated, Any

import typer
from rich.markup import escape

from trellis_cli.client import connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, age, out, print_json, print_table
from trellis_cli.resolve_by_name import find_dataset, find_evaluation, find_job, find_model

Label = Annotated[str | None, typer.Option(help="Benchmark label.")]
Metric = Annotated[str | None, typer.Option(help="Metric; default: the benchmark's main metric.")]
_OBSTACLES = {
    "other_benchmark": "other benchmarks",
    "other_metric": "different main metrics",
    "other_data": "different file revisions",
    "no_common_problems": "no problems in common",
    "samples_missing": "samples of one are missing",
}


def compare(
    evaluations: Annotated[
        list[str], typer.Argument(help="IDs or names of 2 to 6 evaluations; the first is the baseline.")
    ],
    as_json: Json = False,
) -> None:
    """Compare evaluations with the first: differences with 95% CIs and paired tests."""
    client = connect()
    ids = ",".join(find_evaluation(client, each) for each in evaluations)
    found = client.get("/evaluations/compare", ids=ids)
    if as_json:
        print_json(found)
        return
    letters = {each["id"]: chr(ord("A") + place) for place, each in enumerate(found["evaluations"])}
    for each in found["evaluations"]:
        out.print(f"{letters[each['id']]}: {escape(each['name'])}  {each['id']}", soft_wrap=True)
    for table in found["benchmarks"]:
        _print_compared(table, letters)
    for each in found["unshared"]:
        owners = ", ".join(letters[owner] for owner in each["evaluations"])
        out.print(f"{each['label']}: only in {owners}, not compared")


def _print_compared(table: dict[str, Any], letters: dict[str, str]) -> None:
    """Print one benchmark: the baseline, then each other one compared with it."""
    out.print(f"[bold]{escape(name_benchmark(table['label'], table['dataset']))}[/bold] {table['metric']}")
    head = ("", "score", "− A", "p", "test", "problems", "better", "worse")
    rows = [("A", describe_score(table["baseline"]), "", "", "", "", "", "")]
    print_table(head, rows + [_compared(each, letters) for each in table["others"]])
    for each in table["others"]:
        if each["comparison"]["differences"]:
            names = escape(", ".join(each["comparison"]["differences"]))
            letter = letters[each["evaluation_id"]]
            out.print(f"[yellow]{letter}: not measured like A: {names}[/yellow]", soft_wrap=True)
    if table["missing"]:
        out.print(f"not evaluated: {', '.join(letters[each] for each in table['missing'])}")
    tested = sum(each["p_adjusted"] is not None for each in table["others"])
    if tested > 1:
        out.print(f"p: corrected for {tested} comparisons (Holm)", highlight=False)


def _compared(other: dict[str, Any], letters: dict[str, str]) -> tuple[Any, ...]:
    each = other["comparison"]
    scale = 100 if all(0 <= each[letter]["value"] <= 1 for letter in "ab") else 1
    difference = f"{each['difference'] * scale:+.4g}"
    if each["low"] is not None:
        difference += escape(f" [{each['low'] * scale:+.4g}, {each['high'] * scale:+.4g}]")
    head = (letters[other["evaluation_id"]], describe_score(each["b"]), difference)
    if each["obstacle"]:
        return (*head, "", f"none: {_OBSTACLES.get(each['obstacle'], each['obstacle'])}", "", "", "")
    p_value = "" if other["p_adjusted"] is None else f"{other['p_adjusted']:.3g}"
    return (*head, p_value, each["test"] or "", each["pairs"], each["improved"], each["worsened"])


def leaderboard(
    label: Label = None,
    dataset: Annotated[str | None, typer.Option(help="Of a custom benchmark: its dataset.")] = None,
    metric: Metric = None,
    configuration: Annotated[
        str | None, typer.Option(help=("Settings to rank; default: the most common."))
    ] = None,
    as_json: Json = False,
) -> None:
    """Rank models and checkpoints evaluated with the same settings and data."""
    client = connect()
    measured = find_dataset(client, dataset) if dataset else None
    found = client.get(
        "/evaluations/leaderboard", label=label, dataset=measured, metric=metric, configuration=configuration
    )
    if as_json:
        print_json(found)
        return
    if not found["items"]:
        out.print("no scores yet")
        return
    name = escape(name_benchmark(found["label"], found["dataset"]))
    out.print(f"{name} {found['metric']}", highlight=False)
    rows = [
        (
            each["rank"],
            escape(each["target"]["name"]),
            describe_score(each["score"]),
            each["score"]["n"],
            each["evaluation_id"],
            age(each["created_at"]),
        )
        for each in found["items"]
    ]
    print_table(("rank", "target", "score", "problems", "evaluation", "age"), rows)


def matrix(
    newest: Annotated[bool, typer.Option("--newest", help="Newest scores instead of the best.")] = False,
    as_json: Json = False,
) -> None:
    """Show models and checkpoints by benchmarks: main scores, each column measured in one way."""
    found = connect().get("/evaluations/matrix", which="newest" if newest else "best")
    if as_json:
        print_json(found)
        return
    if not found["rows"]:
        out.print("no scores yet")
        return
    benchmarks = [each["benchmark"] for each in found["columns"]]
    names = [escape(name_benchmark(each["label"], each["dataset"])) for each in benchmarks]
    rows = [
        (
            escape(row["target"]["name"]),
            *("–" if cell is None else describe_score(cell["score"]) for cell in row["cells"]),
        )
        for row in found["rows"]
    ]
    print_table(("target", *names), rows)
    for what, more in (("benchmarks", found["more_columns"]), ("models and checkpoints", found["more_rows"])):
        if more:
            out.print(f"{more} more {what}: see `trellis evaluations leaderboard`")


def history(
    model: Annotated[str | None, typer.Option(help="A model and its ancestors.")] = None,
    job: Annotated[str | None, typer.Option(help="A job's checkpoints.")] = None,
    label: Label = None,
    metric: Metric = None,
    as_json: Json = False,
) -> None:
    """Show scores over a job's steps or over a model's ancestors."""
    if (model is None) == (job is None):
        raise Problem("specify either --model or --job", exit_code=ExitCode.USAGE)
    client = connect()
    chosen = find_model(client, model) if model else None
    trained = find_job(client, job) if job else None
    found = client.get("/evaluations/history", model=chosen, job=trained, label=label, metric=metric)["items"]
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["target"]["step"],
            escape(each["target"]["name"]),
            escape(name_benchmark(each["label"], each["dataset"])),
            each["score"]["metric"],
            describe_score(each["score"]),
            each["evaluation_id"],
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("step", "target", "benchmark", "metric", "score", "evaluation", "age"), rows)


def register(app: typer.Typer) -> None:
    """Add the commands to `trellis evaluations`."""
    for command in (compare, leaderboard, matrix, history):
        app.command()(command)


def name_benchmark(label: str, dataset: dict[str, Any] | None) -> str:
    """Return a benchmark's name; one on a dataset of the platform has the dataset's name and version."""
    if dataset is None:
        return label
    name = dataset["name"] or "deleted dataset"
    version = f" @ {dataset['version'][:8]}" if dataset["version"] else ""
    called = f"{name}{' (deleted)' if dataset['is_deleted'] and dataset['name'] else ''}{version}"
    return called if re.fullmatch(r"custom(-\d+)?", label) else f"{called} · {label}"


def percent(value: float | None) -> str:
    """Format a fraction between 0 and 1 as percent and other scores, such as perplexities, as they are."""
    if value is None:
        return "–"
    return f"{value:.1%}" if 0 <= value <= 1 else f"{value:.4g}"


def describe_score(score: dict[str, Any]) -> str:
    """Format a score with its interval, escaped for terminal markup."""
    if score["low"] is None or score["high"] is None:
        return percent(score["value"])
    scale = 100 if score["low"] >= 0 and score["high"] <= 1 else 1
    return escape(f"{percent(score['value'])} [{score['low'] * scale:.4g}, {score['high'] * scale:.4g}]")
