"""The demonstration: a model that cannot add learns to, first from examples, then from its own tries.

Everything after writing the starter model and its data goes through the public API, as any user's would.
A second run finds the model and the datasets of the first and trains anew.
"""

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import Problem
from trellis_cli.output import err
from trellis_cli.services.platform import REPOSITORY_ROOT, Platform, python_command
from trellis_cli.waiting import wait_for_dataset
from trellis_cli.watch import watch_job

TAG = "demo"
PRESET = "cpu-tiny"
#: Enough to see it learn on two cores in a few minutes.
GRPO_PARAMS = {"total_steps": 30, "validate_before": True, "validate_every": 10, "save_every": 0}


def run_demo(platform: Platform, *, seed: int) -> dict[str, Any]:
    """Run both jobs; the answer holds the validation accuracies that the GRPO job measured."""
    client = connect()
    folder = platform.settings.data_root / "starter" / f"seed-{seed}"
    say(f"making the starter model and its data (seed {seed})")
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
    checkpoints = list(client.pages(f"/jobs/{sft}/checkpoints"))
    if not checkpoints:
        raise Problem(f"job {sft} succeeded but left no checkpoint")
    step = max(int(checkpoint["step"]) for checkpoint in checkpoints)
    trained = ensure_model(client, f"starter-sft-{sft}", {"kind": "checkpoint", "job_id": sft, "step": step})
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
    before, after = accuracies(client, grpo)
    return {"accuracy_before": before, "accuracy_after": after, "jobs": [sft, grpo]}


def say(line: str) -> None:
    """Tell what happens, on stderr."""
    err.print(f"[bold]·[/bold] {line}", highlight=False)


def make_starter(folder: Path, seed: int) -> None:
    """Write the starter model and its data unless they are there; half-written ones never are."""
    done = folder / "complete"
    if done.exists():
        return
    command = python_command(
        *("-m", "trellis_train.starter", "--seed", str(seed)),
        *("--model", str(folder / "model"), "--data", str(folder / "data")),
    )
    env = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    made = subprocess.run(command, cwd=REPOSITORY_ROOT, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if made.returncode:
        raise Problem("the starter model could not be made: " + "\n".join(made.stderr.splitlines()[-5:]))
    done.write_text(made.stdout)


def ensure_dataset(client: ApiClient, file: Path, name: str) -> str:
    """The id of the dataset with this very file, uploaded if need be."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    for dataset in client.pages("/datasets"):
        if dataset["name"] == name and dataset["source"]["sha256"] == digest:
            return str(wait_for_dataset(client, dataset["id"])["id"])
    made = client.upload("/datasets", file, {"name": name})
    dataset = wait_for_dataset(client, made["id"])
    say(f"uploaded {name}: {dataset['row_count']} rows, recognised as {dataset['format']}")
    return str(dataset["id"])


def ensure_model(client: ApiClient, name: str, source: dict[str, Any]) -> str:
    """The id of the model with this name, registered if need be."""
    for model in client.pages("/models"):
        if model["name"] == name and model["state"] == "ready":
            return str(model["id"])
    return str(client.post("/models", {"name": name, "source": source})["id"])


def run_job(client: ApiClient, request: dict[str, Any]) -> str:
    """Launch a job, show it to its end, and insist that it succeeded."""
    job = client.post("/jobs", request)
    say(f"{request['name']}: {client.url}/jobs/{job['id']}")
    ended = watch_job(client, job["id"])
    if ended["state"] != "succeeded":
        failure = ended.get("failure") or {}
        lines = "\n  ".join(failure.get("last_lines", [])[-15:])
        raise Problem(f"job {job['id']} {ended['state']}: {failure.get('reason')}\n  {lines}")
    return str(job["id"])


def accuracies(client: ApiClient, job: str) -> tuple[float, float]:
    """Validation accuracy at the first and at the last measurement of a GRPO job."""
    keys = [each["key"] for each in client.get(f"/jobs/{job}/metric-keys")]
    key = next((key for key in keys if key.startswith("val-core/") and "/acc/" in key), None)
    if key is None:
        raise Problem(f"job {job} measured no validation accuracy; it reported {json.dumps(keys)}")
    (series,) = client.get(f"/jobs/{job}/metrics", keys=key)["series"]
    values = [value for value in series["values"] if value is not None]
    if len(values) < 2:
        raise Problem(f"job {job} measured {key} only {len(values)} time(s)")
    return float(values[0]), float(values[-1])
