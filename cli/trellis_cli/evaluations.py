"""`trellis evaluations`: models and checkpoints measured on benchmarks."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from trellis_contracts.evaluation import Verdict
from trellis_contracts.states import FINISHED

from trellis_cli import evaluation_scores
from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.evaluation_orders import read_orders, read_targets
from trellis_cli.evaluation_scores import describe_score, name_benchmark, percent
from trellis_cli.old_names import also_known_as
from trellis_cli.output import Json, age, duration, err, out, print_json, print_table, styled
from trellis_cli.resolve_by_name import find_evaluation, find_job, find_model
from trellis_cli.waiting import WaitForEnd, read_patiently
from trellis_cli.watch import POLL_S, JobDisplay

app = typer.Typer(no_args_is_help=True)
Evaluation = Annotated[str, typer.Argument(help="ID (ev_...) or name; the latest if several share the name.")]
OneEvaluation = Annotated[str, typer.Argument(help="ID (ev_...) or unique name.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it finishes and print the scores.")]
#: Of a text in a table.
_SHOWN = 60


@also_known_as(app, "run", now="submit")
@app.command()
def submit(
    model: Annotated[list[str] | None, typer.Option(help="Model name or ID; repeatable.")] = None,
    checkpoint: Annotated[list[str] | None, typer.Option(help="Checkpoint as JOB:STEP; repeatable.")] = None,
    benchmarks: Annotated[
        str | None, typer.Option(help="Comma-separated names; harness:TASK for lm-evaluation-harness.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="YAML list of benchmarks with settings.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Max problems per benchmark.")] = None,
    shots: Annotated[int | None, typer.Option(min=0, help="Few-shot examples per problem.")] = None,
    chat: Annotated[
        Literal["auto", "always", "never"] | None, typer.Option(help="Use the model's chat template.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, max=2, help=("Sampling temperature; default: 0 (greedy)."))
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Max tokens per answer.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for sampling problems when limited.")] = 0,
    priority: Annotated[int, typer.Option(min=-100, max=100, help="Priority among evaluations.")] = 0,
    name: Annotated[str | None, typer.Option(help="Name; default: the model and benchmark names.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only print an estimate.")] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Evaluate models or checkpoints, one evaluation each."""
    client = connect()
    changes = {"limit": limit, "shots": shots, "chat": chat}
    decoding = {"temperature": temperature, "max_tokens": max_tokens}
    plan: dict[str, Any] = {
        "targets": read_targets(client, model or [], checkpoint or []),
        "benchmarks": read_orders(benchmarks, file, changes, decoding),
        "seed": seed,
    }
    if estimate:
        _print_estimate(client.post("/evaluations/estimate", plan), as_json=as_json)
        return
    made = client.post("/evaluations", plan | {"name": name, "priority": priority})["items"]
    if wait:
        _await_scores(client, made, as_json=as_json)
    elif as_json:
        print_json(made)
    else:
        _print_list(made)


@app.command("list")
def list_evaluations(
    model: Annotated[str | None, typer.Option(help="Filter by model.")] = None,
    job: Annotated[str | None, typer.Option(help="Filter by checkpoints of this job.")] = None,
    benchmark: Annotated[str | None, typer.Option(help="Filter by benchmark.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Filter by state; repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    as_json: Json = False,
) -> None:
    """List evaluations, newest first."""
    client = connect()
    chosen = find_model(client, model) if model else None
    trained = find_job(client, job) if job else None
    found = client.get(
        "/evaluations", model=chosen, job=trained, benchmark=benchmark, state=state, limit=limit
    )
    if as_json:
        print_json(found["items"])
    else:
        _print_list(found["items"])


@app.command()
def show(evaluation: Evaluation, wait: Wait = False, as_json: Json = False) -> None:
    """Show scores with confidence intervals and outcome counts."""
    client = connect()
    found = client.get(f"/evaluations/{find_evaluation(client, evaluation)}")
    if wait:
        _await_scores(client, [found], as_json=as_json)
    elif as_json:
        print_json(found)
    else:
        print_scores(found)


@app.command()
def manifest(evaluation: Evaluation) -> None:
    """Show the evaluation manifest as JSON."""
    client = connect()
    print_json(client.get(f"/evaluations/{find_evaluation(client, evaluation)}/manifest")["manifest"])


@app.command()
def samples(
    evaluation: Evaluation,
    label: Annotated[str, typer.Argument(help="Benchmark label.")],
    verdict: Annotated[list[Verdict] | None, typer.Option(help="Filter by verdict; repeatable.")] = None,
    group: Annotated[str | None, typer.Option(help="KIND=NAME, for example 'level=Level 5'.")] = None,
    search: Annotated[str | None, typer.Option(help="Search prompts, answers and references.")] = None,
    against: Annotated[str | None, typer.Option(help="Evaluation to compare with.")] = None,
    changed: Annotated[
        Literal["any", "better", "worse"] | None, typer.Option(help="Filter by change relative to --against.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Max samples to print.")] = 20,
    as_json: Json = False,
) -> None:
    """List samples, one per line; with --json, in full as JSON Lines."""
    kind, name = _split_group(group)
    client = connect()
    asked = {
        "label": label, "verdict": verdict, "group_kind": kind, "group": name, "search": search,
        "against": find_evaluation(client, against) if against else None, "changed": changed,
    }  # fmt: skip
    left, rows, path = limit, [], f"/evaluations/{find_evaluation(client, evaluation)}/samples"
    # A search hands out pages with few samples or none before it is through.
    for each in client.pages(path, limit=min(limit, 200), **asked):
        if as_json:
            print_json(each)
        else:
            rows.append(_sample_row(each))
        left -= 1
        if not left:
            break
    if not as_json:
        print_table(("problem", "verdict", "answer", "reference", "output"), rows)


@also_known_as(app, "cancel", now="stop")
@app.command()
def stop(evaluation: OneEvaluation, wait: WaitForEnd = False, as_json: Json = False) -> None:
    """Stop an evaluation; results so far are kept."""
    client = connect()
    called = find_evaluation(client, evaluation, must_be_one=True)
    found = client.post(f"/evaluations/{called}/cancel")
    if wait:
        found = _follow(client, called, quiet=as_json)
    _print_changed(found, as_json=as_json)


@also_known_as(app, "retry", now="resume")
@app.command()
def resume(evaluation: OneEvaluation, wait: Wait = False, as_json: Json = False) -> None:
    """Resume a failed or stopped evaluation."""
    client = connect()
    called = find_evaluation(client, evaluation, must_be_one=True)
    found = client.post(f"/evaluations/{called}/retry")
    if wait:
        _await_scores(client, [found], as_json=as_json)
    else:
        _print_changed(found, as_json=as_json)


@app.command()
def delete(evaluation: OneEvaluation) -> None:
    """Delete an evaluation and its samples."""
    client = connect()
    client.delete(f"/evaluations/{find_evaluation(client, evaluation, must_be_one=True)}")


def _await_scores(client: ApiClient, made: list[dict[str, Any]], *, as_json: bool) -> None:
    """Follow evaluations to their ends, and print them; ``Problem`` where one did not succeed."""
    ended = [_follow(client, each["id"], quiet=as_json) for each in made]
    if as_json:
        print_json(ended)
    else:
        for each in ended:
            print_scores(each)
    if failed := [each for each in ended if each["state"] != "succeeded"]:
        raise Problem("; ".join(_say_failure(each) for each in failed))


def print_scores(evaluation: dict[str, Any]) -> None:
    """Print an evaluation in readable form."""
    target = evaluation["target"]
    out.print(
        f"[bold]{escape(evaluation['name'])}[/bold]  {evaluation['id']}  {styled(evaluation['state'])}",
        soft_wrap=True,
    )
    out.print(f"{target['kind']} {escape(target['name'])}", highlight=False, soft_wrap=True)
    if evaluation["failure"]:
        out.print(f"[red]{escape(str(evaluation['failure'].get('reason')))}[/red]", soft_wrap=True)
    results = evaluation["results"] or []
    rows = [
        (
            escape(name_benchmark(result["label"], evaluation["datasets"].get(result["label"]))),
            escape(score["metric"]),
            describe_score(score),
            score["n"],
        )
        for result in results
        for score in result["scores"]
    ]
    if rows:
        print_table(("benchmark", "metric", "score", "problems"), rows)
        kinds = [verdict.value for verdict in Verdict]
        print_table(
            ("benchmark", *kinds, "time"),
            [
                (result["label"], *(result["counts"][kind] for kind in kinds), duration(result["seconds"]))
                for result in results
            ],
        )
    for label, scores in evaluation.get("partial", {}).items() if not results else ():
        said = ", ".join(f"{metric} {percent(value)}" for metric, value in scores.items())
        out.print(f"{label} so far: {said}", highlight=False, soft_wrap=True)


def _follow(client: ApiClient, evaluation_id: str, *, quiet: bool) -> dict[str, Any]:
    """Show an evaluation until it has ended; the API may be away for a while."""
    with JobDisplay() as display:
        while True:
            found = read_patiently(client, f"/evaluations/{evaluation_id}")
            if found["state"] in FINISHED and not found["preempted"]:
                return found
            if not quiet:
                display.show(found, _say_partial(found))
            time.sleep(POLL_S)


def _say_partial(evaluation: dict[str, Any]) -> str:
    if evaluation["pending_benchmarks"]:
        return f"waiting for files: {', '.join(evaluation['pending_benchmarks'])}"
    scores = [
        f"{label}/{metric} {percent(value)}"
        for label, metrics in evaluation["partial"].items()
        for metric, value in metrics.items()
    ]
    return "  ".join(scores)


def _say_failure(evaluation: dict[str, Any]) -> str:
    failure = evaluation["failure"] or {}
    reason = f": {failure['reason']}" if failure.get("reason") else ""
    return f"{evaluation['name']} ({evaluation['id']}) has {evaluation['state']}{reason}"


def _print_list(found: list[dict[str, Any]]) -> None:
    rows = [
        (
            each["id"],
            escape(each["name"]),
            styled(each["state"]),
            escape(each["target"]["name"]),
            escape(_headlines(each)),
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "state", "target", "scores", "age"), rows)


def _headlines(evaluation: dict[str, Any]) -> str:
    if not evaluation["results"]:
        labels = (str(order["label"]) for order in evaluation["benchmarks"])
        return ", ".join(name_benchmark(label, evaluation["datasets"].get(label)) for label in labels)
    found = []
    for result in evaluation["results"]:
        score = next(each for each in result["scores"] if each["metric"] == result["headline"])
        name = name_benchmark(result["label"], evaluation["datasets"].get(result["label"]))
        found.append(f"{name} {percent(score['value'])}")
    return ", ".join(found)


def _print_changed(evaluation: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(evaluation)
    else:
        err.print(f"{evaluation['id']} is {evaluation['state']}", highlight=False)


def _print_estimate(estimate: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(estimate)
        return
    unknown = "no data yet"
    rows = [
        (
            escape(target["name"]),
            each["label"],
            each["samples"],
            each["output_tokens"],
            duration(each["seconds"]) if each["seconds"] is not None else unknown,
        )
        for target in estimate["targets"]
        for each in target["benchmarks"]
    ]
    print_table(("target", "benchmark", "samples", "output tokens", "time"), rows)
    if estimate["judge_cost"]:
        out.print(f"judges: at most {estimate['judge_cost']:.2f} US dollars")
    if estimate["to_install"]:
        out.print(f"downloads first: {', '.join(estimate['to_install'])}")


def _split_group(group: str | None) -> tuple[str | None, str | None]:
    if group is None:
        return None, None
    kind, equals, name = group.partition("=")
    if not equals or not kind or not name:
        raise Problem(f"invalid group '{group}'", hint="--group 'level=Level 5'", exit_code=ExitCode.USAGE)
    return kind, name


def _sample_row(sample: dict[str, Any]) -> tuple[str, ...]:
    texts = (sample["extracted"] or "", sample["gold"], sample["output"])
    return (sample["key"], sample["verdict"], *(escape(_one_line(text)) for text in texts))


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= _SHOWN else f"{joined[:_SHOWN]}…"


evaluation_scores.register(app)
