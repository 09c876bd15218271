"""`trellis jobs compare`: the tables of the comparison page, in a terminal."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from trellis_cli.client import connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, out, print_json, print_table
from trellis_cli.resolve_by_name import find_job

MOST_JOBS = 20
#: Below this a difference is called one: the usual bound.
LEVEL = 0.05


def register(app: typer.Typer) -> None:
    """Add the command to those of jobs."""
    app.command()(compare)


def compare(
    jobs: Annotated[list[str], typer.Argument(help="IDs (job_...) or names of 2 to 20 jobs.")],
    baseline: Annotated[str | None, typer.Option(help="Baseline job; default: the first.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric key; default: headline and validation metrics.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare jobs with a baseline: settings, last and best metrics, tests over seeds and of evaluations."""
    client = connect()
    ids = list(dict.fromkeys(find_job(client, each) for each in jobs))
    if not 2 <= len(ids) <= MOST_JOBS:
        raise Problem(f"specify 2 to {MOST_JOBS} different jobs", exit_code=ExitCode.USAGE)
    base = find_job(client, baseline) if baseline else ids[0]
    if base not in ids:
        raise Problem("the baseline is not among the jobs", exit_code=ExitCode.USAGE)
    asked = ",".join(ids)
    found = client.get("/jobs/compare", ids=asked, keys=metric)
    seeds = client.get("/jobs/compare/seeds", ids=asked, baseline=base, metric=metric[0] if metric else None)
    evaluations = client.get("/jobs/compare/evaluations", ids=asked, baseline=base)
    if as_json:
        print_json({**found, "baseline": base, "seeds": seeds, "evaluations": evaluations})
        return
    print_jobs(found, base)
    print_parameters(found)
    print_metrics(found, base)
    print_seeds(seeds)
    print_evaluations(found, evaluations)


def print_jobs(found: dict[str, Any], base: str) -> None:
    """Print which column stands for which job, and which jobs differ only in the seed."""
    letters = _letters(found)
    print_table(
        ("", "id", "name", "state", "seed"),
        [
            (letters[job["id"]] + ("*" if job["id"] == base else ""), job["id"], job["name"], job["state"],
             job["seed"])
            for job in found["jobs"]
        ],
    )  # fmt: skip
    out.print("* baseline", style="dim")
    for group in found["seed_groups"]:
        out.print(f"{', '.join(letters[each] for each in group)} differ only in the seed", highlight=False)
    for gone in found["missing"]:
        out.print(f"{gone} was deleted", highlight=False)


def print_parameters(found: dict[str, Any]) -> None:
    """Print a row for every setting that differs between the jobs."""
    letters = _letters(found)
    if not found["parameters"]:
        out.print("\nThe jobs have the same settings.")
        return
    rows = [
        (f"{row['group']}.{row['name']}", *(_show(row["values"].get(job)) for job in letters))
        for row in found["parameters"]
    ]
    out.print()
    print_table(("setting", *letters.values()), rows)


def print_metrics(found: dict[str, Any], base: str) -> None:
    """Print last and best of every metric, with the difference from the baseline."""
    letters = _letters(found)
    for name in ("last", "best"):
        rows = []
        for row in found["metrics"]:
            values = {job: (row["values"].get(job) or {}).get(name) for job in letters}
            cells = (_difference(values[job], values[base], is_base=job == base) for job in letters)
            rows.append((row["key"], *cells, *_mean_cells(found, values)))
        if rows:
            out.print()
            means = [f"mean({''.join(letters[each] for each in group)})" for group in found["seed_groups"]]
            print_table((name, *letters.values(), *means), rows)


def print_seeds(seeds: dict[str, Any]) -> None:
    """Print a sentence for every group of seeds compared with the baseline's."""
    if seeds["differences"]:
        out.print()
    for row in seeds["differences"]:
        out.print(describe_difference(seeds, row), highlight=False, markup=False, soft_wrap=True)
    for group in seeds["groups"]:
        if group["failed"]:
            runs = "run" if len(group["failed"]) == 1 else "runs"
            note = f"Not counted: {len(group['failed'])} failed {runs} of {group['name']}."
            out.print(note, highlight=False, markup=False, soft_wrap=True)


def describe_difference(seeds: dict[str, Any], row: dict[str, Any]) -> str:
    """Describe which of two settings is better, by how much, and from how many seeds."""
    base, group = seeds["groups"][seeds["baseline"]], seeds["groups"][row["group"]]
    counts = (group["seed_count"], base["seed_count"])
    each = f"{counts[0]} {'seed' if counts[0] == 1 else 'seeds'} each"
    number = each if counts[0] == counts[1] else f"{counts[0]} and {counts[1]} seeds"
    end = {"min": ", lower is better", "max": ", higher is better"}.get(seeds["mode"] or "", "")
    what = f"{seeds['metric']} ({seeds['take']}{end})"
    difference = f"{row['difference']:+.4g}"
    if row["verdict"] == "too_few_seeds":
        return (
            f"{group['name']} vs {base['name']}, {what}: {difference}, {number}: "
            "the difference may be chance; run 3 seeds of each."
        )
    if row["verdict"] == "no_spread":
        return f"{group['name']} vs {base['name']}, {what}: {difference}, {number}, no spread over seeds."
    test = f"95 % CI {row['low']:+.4g} to {row['high']:+.4g} (Welch's t), {number}"
    if row["p_adjusted"] != row["p_value"]:
        test += f", p = {row['p_adjusted']:.2g} by Holm's method"
    if row["verdict"] == "unclear":
        return (
            f"No clear difference between {group['name']} and {base['name']} on {what}: {difference}, {test}."
        )
    if row["verdict"] == "different":
        return f"{group['name']} differs from {base['name']} on {what}: {difference}, {test}."
    return f"{group['name']} is {row['verdict']} than {base['name']} on {what}: {difference}, {test}."


def print_evaluations(found: dict[str, Any], evaluations: dict[str, Any]) -> None:
    """Print a sentence for every benchmark that a job has in common with the baseline."""
    names = {job["id"]: job["name"] for job in found["jobs"]}
    base = names[evaluations["baseline"]]
    pairs = [(names[run["job_id"]], pair) for run in evaluations["runs"] for pair in run["benchmarks"]]
    if pairs:
        out.print()
    for name, pair in pairs:
        out.print(describe_pair(name, base, pair), highlight=False, markup=False, soft_wrap=True)


def describe_pair(name: str, base: str, pair: dict[str, Any]) -> str:
    """Describe the result of a paired comparison, and what was not measured under the same conditions."""
    compared, p_value = pair["comparison"], pair["p_adjusted"]
    difference = compared["difference"]
    label = compared["label"]
    if compared["obstacle"] is not None or p_value is None:
        return f"{label}: {name} and {base} cannot be compared problem by problem ({compared['obstacle']})."
    corrected = "" if p_value == compared["p_value"] else " by Holm's method"
    test = f"p = {p_value:.3g}{corrected}, {compared['test']}, {compared['pairs']} problems in common"
    names = ", ".join(compared["differences"])
    note = f" Not measured alike: {names}." if names else ""
    if p_value >= LEVEL:
        return f"{label}: no clear difference between {name} and {base} ({difference:+.4g}; {test}).{note}"
    word = "higher" if difference > 0 else "lower"
    return f"{label}: {name} scores {word} than {base} by {abs(difference):.4g} ({test}).{note}"


def _letters(found: dict[str, Any]) -> dict[str, str]:
    return {job["id"]: chr(ord("A") + place) for place, job in enumerate(found["jobs"])}


def _mean_cells(found: dict[str, Any], values: dict[str, float | None]) -> list[str]:
    """Format mean and sample standard deviation over jobs that differ only in the seed."""
    cells = []
    for group in found["seed_groups"]:
        present = [value for each in group if (value := values.get(each)) is not None]
        cells.append(_mean_and_deviation(present))
    return cells


def _mean_and_deviation(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.4g}"
    deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{mean:.4g} ± {deviation:.2g}"


def _difference(value: float | None, base: float | None, *, is_base: bool) -> str:
    """Format a value with its absolute and relative difference from the baseline's."""
    if value is None:
        return ""
    if is_base or base is None:
        return f"{value:.4g}"
    relative = f", {(value - base) / abs(base):+.1%}" if base else ""
    return f"{value:.4g} ({value - base:+.3g}{relative})"


def _show(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
