"""`trellis jobs timing`: where the time of a job's steps goes, and what limits it."""

from typing import Annotated, Any

import typer

from trellis_cli.client import connect
from trellis_cli.output import Json, out, print_json, print_table
from trellis_cli.resolve_by_name import find_job

#: Groups of phases whose names need more than a capital letter.
_GROUPS = {"log_probs": "Log-probabilities", "checkpoint": "Checkpoints", "other": "Other work"}


def register(app: typer.Typer) -> None:
    """Add the command to those of jobs."""
    app.command("timing")(show_timing)


def show_timing(
    job: Annotated[str, typer.Argument(help="ID (job_...) or name; the latest if several share the name.")],
    as_json: Json = False,
) -> None:
    """Show where the time of a step goes, phase by phase, and what limits the run."""
    client = connect()
    found = client.get(f"/jobs/{find_job(client, job)}/timing")
    if as_json:
        print_json(found)
        return
    if found["bottleneck"] is None:
        out.print("no step was measured", style="dim", markup=False, highlight=False)
        return
    out.print("What limits this run", style="bold", markup=False, highlight=False)
    out.print(f"{describe_limit(found['bottleneck'])}\n", markup=False, highlight=False)
    rows = [
        (
            phase["phase"],
            name_group(phase["group"]) + ("" if phase["in_step"] else " (beside the steps)"),
            f"{phase['total_s'] / found['steps']:.3g} s",
            f"{phase['share']:.0%}",
        )
        for phase in found["phases"]
    ]
    print_table(("phase", "group", "per step", "share"), rows)


def name_group(group: str) -> str:
    """Return the name of a group of phases."""
    return _GROUPS.get(group) or group.replace("_", " ").capitalize()


def describe_limit(limit: dict[str, Any]) -> str:
    """Describe what limits a run as the *Time* tab of its page does: a sentence, and its figures."""
    steps = "1 measured step" if limit["steps"] == 1 else f"{limit['steps']} measured steps"
    said = [
        f"{name_group(limit['group'])} takes {limit['share']:.0%} of the time: "
        f"{limit['seconds']:.3g} s per step on average, over {steps}."
    ]
    longest, tail = limit["longest_response"], limit["tail_share"]
    queued, cache = limit["queued_share"], limit["kv_cache_use"]
    workers, engines = limit["workers_busy"], limit["engines_busy"]
    if limit["group"] == "generation" and longest is not None:
        said.append(f"The longest response takes {longest:.2g}x as long as the median.")
    if limit["group"] == "generation" and tail is not None:
        said.append(f"The last tenth of the responses takes {tail:.0%} of generation.")
    if limit["group"] == "generation" and queued is not None and cache is not None:
        said.append(
            f"Requests wait in the engine's queue {queued:.0%} of its time, and its KV cache is up to "
            f"{cache:.0%} full."
        )
    if workers is not None and engines is not None:
        said.append(
            f"In a step the training processes are at work {workers:.0%} of the time, the rollout engines "
            f"{engines:.0%}; the rest they wait."
        )
    return " ".join(said)
