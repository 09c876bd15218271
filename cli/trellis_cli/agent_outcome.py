"""What `trellis agent train` prints at its end: metrics, the mix of rows, and the place of the model."""

import json
import subprocess
from pathlib import Path
from typing import Any

import typer
from trellis_contracts.attempt import MIX_FILE, PREPARED_FOLDER, SPEC_FILE
from trellis_contracts.spec import JobSpec

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.local_run import LocalOutcome
from trellis_cli.output import err, out, print_json, print_table
from trellis_cli.services.platform import python_command

PREPARER = "trellis_train.data.prepare_alone"


def find_loadable(outcome: LocalOutcome) -> str | None:
    """Return what ``from_pretrained`` can load of the newest checkpoint: whole weights, or a TRL adapter.

    None where the weights are in shards, as of verl's runs with an adapter.
    """
    if outcome.hf_path or outcome.checkpoint is None:
        return outcome.hf_path
    adapter = Path(outcome.checkpoint) / "lora_adapter"
    return str(adapter) if adapter.is_dir() else None


def read_mix(attempt_dir: str) -> dict[str, Any] | None:
    """Read how many rows of each kind of task were trained on; None for stages that mix none."""
    file = Path(attempt_dir) / PREPARED_FOLDER / MIX_FILE
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def print_outcome(
    outcome: LocalOutcome, recipe: str, shown: list[str], *, mix: dict[str, Any] | None, as_json: bool
) -> None:
    if as_json:
        print_json(outcome.as_dict() | ({} if mix is None else {"mix": mix}))
        return
    if mix is not None:
        kinds = ", ".join(f"{kind} {count}" for kind, count in mix["task_types"].items())
        out.print(f"trained on {mix['rows']} rows: {kinds}", markup=False)
    from trellis_recipes.catalogue import get_recipe
    from trellis_recipes.headline_metrics import name_headlines

    names = shown or name_headlines(get_recipe(recipe).headline_metrics, outcome.metrics)
    missing = [name for name in shown if name not in outcome.metrics]
    if missing:
        err.print(f"not measured: {', '.join(missing)}", style="yellow", markup=False)
    rows = [(name, f"{outcome.metrics[name]:.4g}") for name in names if name in outcome.metrics]
    print_table(("metric", "value"), rows)
    place = find_loadable(outcome)
    if place is None and outcome.checkpoint is not None:
        place = f"for a model: trellis agent export {outcome.folder} --output FOLDER"
    out.print(f"{outcome.outcome} at step {outcome.step} after {outcome.seconds} s; {place}", markup=False)


def show_rows(spec: JobSpec, *, as_json: bool) -> None:
    """Prepare the rows of a job that is not trained, and print how many there are.

    Where they are of no use, ``Problem`` with the code; as JSON, ``{"error": {"code", "message"}}``.
    """
    command = python_command("-m", PREPARER, str(Path(spec.attempt_dir) / SPEC_FILE))
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own module
    lines = done.stdout.strip().splitlines()
    if not lines:
        raise Problem((done.stderr.strip().splitlines() or ["the rows cannot be prepared"])[-1])
    found = json.loads(lines[-1])
    if as_json:
        print_json(found)
    if (error := found.get("error")) is not None:
        if as_json:
            raise typer.Exit(ExitCode.USAGE)
        raise Problem(f"{error['code']}: {error['message']}", exit_code=ExitCode.USAGE)
    if as_json:
        return
    mix = found.pop("mix", {})
    kinds = mix.pop("task_types", {})
    mix.pop("rows", None)
    counts = [(name.replace("_", " "), f"{count:,}") for name, count in (*found.items(), *mix.items())]
    print_table(("rows", "count"), [*counts, *((kind, f"{count:,}") for kind, count in kinds.items())])
