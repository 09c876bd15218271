"""The demonstration: a model that cannot add learns to, first from examples, then from its own tries.

Everything after writing the starter model and its data goes through the public API, as any user's would.
A second run finds the model and the datasets of the first and trains anew.
"""

from pathlib import Path
from typing import Any

from trellis_cli.client import connect_to
from trellis_cli.demo.steps import (
    TAG,
    ensure_dataset,
    ensure_model,
    last_checkpoint,
    measured_accuracies,
    run_job,
    say,
    write_once,
)
from trellis_cli.services.platform import Platform

PRESET = "cpu-tiny"
#: Enough to see it learn on two cores in a few minutes.
GRPO_PARAMS = {"total_steps": 30, "validate_before": True, "validate_every": 10, "save_every": 0}


def run_demo(platform: Platform, *, seed: int) -> dict[str, Any]:
    """Run both jobs; the answer holds the validation accuracies that the GRPO job measured."""
    client = connect_to(platform)
    folder = platform.settings.data_root / "starter" / f"seed-{seed}"
    say(f"creating the starter model and its data (seed {seed})")
    make_starter(folder, seed)
    datasets = {
        name: ensure_dataset(client, folder / "data" / f"{name}.jsonl", f"addition-{name}-seed{seed}")
        for name in ("sft", "rl_train", "rl_validation")
    }
    root = platform.settings.data_root
    starter = ensure_model(
        client, f"starter-seed{seed}", {"kind": "local", "path": str((folder / "model").relative_to(root))}
    )
    sft = run_job(
        client,
        {
            "name": f"demo: SFT, seed {seed}",
            "recipe": "sft",
            "preset": PRESET,
            "model": starter,
            "dataset": datasets["sft"],
            "seed": seed,
            "tags": [TAG],
        },
    )
    trained = ensure_model(client, f"starter-sft-{sft}", last_checkpoint(client, sft))
    grpo = run_job(
        client,
        {
            "name": f"demo: GRPO, seed {seed}",
            "recipe": "grpo",
            "preset": PRESET,
            "model": trained,
            "dataset": datasets["rl_train"],
            "validation_dataset": datasets["rl_validation"],
            "params": GRPO_PARAMS,
            "seed": seed,
            "tags": [TAG],
        },
    )
    before, after = measured_accuracies(client, grpo)
    return {"accuracy_before": before, "accuracy_after": after, "jobs": [sft, grpo]}


def make_starter(folder: Path, seed: int) -> None:
    """Write the starter model and its data unless they are there; half-written ones never are."""
    model, data = folder / "model", folder / "data"
    write_once(folder, ("--seed", str(seed), "--model", str(model), "--data", str(data)))
