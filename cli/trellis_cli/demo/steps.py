"""What the demonstrations have in common: data, models and jobs through the public API."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err
from trellis_cli.resolve_by_name import look_for_model
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_cli.task_bar import FetchBar
from trellis_cli.waiting import wait_for_dataset, wait_for_model
from trellis_cli.watch import watch_job

TAG = "demo"


def say(line: str) -> None:
    """Tell what happens, on stderr."""
    err.print(f"[bold]·[/bold] {line}", highlight=False)


def write_once(folder: Path, arguments: Sequence[str]) -> None:
    """Have ``trellis_train.starter`` write files below a folder, unless an earlier run completed them."""
    done = folder / "complete"
    if done.exists():
        return
    command = python_command("-m", "trellis_train.starter", *arguments)
    env = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    made = subprocess.run(command, cwd=REPOSITORY_ROOT, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if made.returncode:
        raise Problem("could not write the demo's files: " + "\n".join(made.stderr.splitlines()[-5:]))
    done.parent.mkdir(parents=True, exist_ok=True)
    done.write_text(made.stdout)


def ensure_dataset(client: ApiClient, file: Path, name: str) -> str:
    """Return the id of the dataset with exactly this file; upload it if needed.

    Where an older version of the demonstration left other rows under the name, it gets a further part.
    """
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    known = list(client.pages("/datasets"))
    for dataset in known:
        if dataset["source"]["sha256"] == digest and dataset["name"] in (name, f"{name}-{digest[:8]}"):
            return str(wait_for_dataset(client, dataset["id"])["id"])
    if any(dataset["name"] == name for dataset in known):
        name = f"{name}-{digest[:8]}"
    made = client.upload("/datasets", file, {"name": name})
    dataset = wait_for_dataset(client, made["id"])
    say(f"uploaded {name}: {dataset['row_count']} rows, detected as {dataset['format']}")
    return str(dataset["id"])


def ensure_model(client: ApiClient, name: str, source: dict[str, Any]) -> str:
    """Return the id of the model with this name; register it if needed."""
    for model in client.pages("/models"):
        if model["name"] == name and model["state"] == "ready":
            return str(model["id"])
    made = client.post("/models", {"name": name, "source": source})
    with FetchBar() as bar:
        return str(wait_for_model(client, made["id"], look=bar.show)["id"])


def find_or_get(client: ApiClient, name: str) -> str:
    """Return the id of the platform's model of that name, or fetch the catalogue's model of that name."""
    if found := look_for_model(client, name):
        return found
    known = [entry["name"] for entry in client.get("/models/catalogue")["items"]]
    if name not in known:
        raise Problem(
            f"unknown model '{name}'; available in the catalogue: {', '.join(known)}",
            exit_code=ExitCode.USAGE,
        )
    say(f"downloading {name}")
    return ensure_model(client, name, {"kind": "catalogue", "name": name})


def register_folder(client: ApiClient, data_root: Path, folder: Path, name: str) -> str:
    """Copy a model folder below the data root, register it by path, and return the model's id."""
    shutil.copytree(folder, data_root / name)
    return ensure_model(client, name, {"kind": "local", "path": name})


def last_checkpoint(client: ApiClient, job: str) -> dict[str, Any]:
    """Return a job's newest checkpoint as the source of a model."""
    checkpoints = list(client.pages(f"/jobs/{job}/checkpoints"))
    if not checkpoints:
        raise Problem(f"job {job} succeeded but saved no checkpoint")
    step = max(int(checkpoint["step"]) for checkpoint in checkpoints)
    return {"kind": "checkpoint", "job_id": job, "step": step}


def run_job(client: ApiClient, request: dict[str, Any]) -> str:
    """Launch a job, show it to its end, and require success."""
    job = client.post("/jobs", request)
    say(f"{request['name']}: {client.url}/jobs/{job['id']}")
    ended = watch_job(client, job["id"])
    if ended["state"] != "succeeded":
        failure = ended.get("failure") or {}
        lines = "\n  ".join(failure.get("last_lines", [])[-15:])
        raise Problem(f"job {job['id']} {ended['state']}: {failure.get('reason')}\n  {lines}")
    return str(job["id"])


def measured_accuracies(client: ApiClient, job: str) -> tuple[float, float]:
    """Return a GRPO job's validation accuracy at the first and at the last measurement."""
    keys = [each["key"] for each in client.get(f"/jobs/{job}/metric-keys")]
    key = next((key for key in keys if key.startswith("val-core/") and "/acc/" in key), None)
    if key is None:
        raise Problem(f"job {job} reported no validation accuracy, only {json.dumps(keys)}")
    (series,) = client.get(f"/jobs/{job}/metrics", keys=key)["series"]
    values = [value for value in series["values"] if value is not None]
    if len(values) < 2:
        raise Problem(f"job {job} reported {key} only {len(values)} time(s)")
    return float(values[0]), float(values[-1])
