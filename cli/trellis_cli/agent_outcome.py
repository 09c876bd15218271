"""What `trellis agent train` prints at its end: metrics, the mix of rows, and the place of the model."""

import json
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import PREPARED_FOLDER

from trellis_cli.local_run import LocalOutcome
from trellis_cli.output import err, out, print_json, print_table

#: Of the trainer: how many rows of which kind are learned, in the attempt's folder of prepared files.
MIX_FILE = "mix.json"


def find_loadable(outcome: LocalOutcome) -> str | None:
    """What ``from_pretrained`` loads of the newest checkpoint: whole weights, or an adapter of TRL's.

    None where the weights are in shards, as of verl's runs with an adapter.
    """
    if outcome.hf_path or outcome.checkpoint is None:
        return outcome.hf_path
    adapter = Path(outcome.checkpoint) / "lora_adapter"
    return str(adapter) if adapter.is_dir() else None


def read_mix(attempt_dir: str) -> dict[str, Any] | None:
    """The rows that were learned, by kind of task; None of stages that mix none."""
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

    names = shown or get_recipe(recipe).headline_metrics
    missing = [name for name in shown if name not in outcome.metrics]
    if missing:
        err.print(f"not measured: {', '.join(missing)}", style="yellow", markup=False)
    rows = [(name, f"{outcome.metrics[name]:.4g}") for name in names if name in outcome.metrics]
    print_table(("metric", "value"), rows)
    place = find_loadable(outcome)
    if place is None and outcome.checkpoint is not None:
        place = f"for a model: trellis agent export {outcome.folder} --output FOLDER"
    out.print(f"{outcome.outcome} at step {outcome.step} after {outcome.seconds} s; {place}", markup=False)
