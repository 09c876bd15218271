"""Preferences uploaded in pieces, split by a pipeline, learned from with DPO over the API, and registered."""

import json
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.demo import starter as demo
from trellis_cli.waiting import wait_for_dataset, wait_for_task
from trellis_data.samples.preferences import write_preferences

pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]
STEPS = 12


def curl(rig: Any, method: str, path: str, *options: str, headers: dict[str, str] | None = None) -> str:
    """What curl gets from the API: the headers and the body of the answer."""
    token = rig.platform.settings.admin_token_path.read_text().strip()
    sent = {"Authorization": f"Bearer {token}", **(headers or {})}
    named = [word for name, value in sent.items() for word in ("-H", f"{name}: {value}")]
    url = f"{rig.platform.url}{path}"
    command = ["curl", "-sS", "-i", "-X", method, *named, *options, url]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def header(answer: str, name: str) -> str:
    lines = [line for line in answer.splitlines() if line.lower().startswith(f"{name.lower()}:")]
    assert lines, answer
    return lines[0].partition(":")[2].strip()


def send_in_pieces(rig: Any, file: Path) -> str:
    """Send a file by the tus protocol with a break in the middle of a piece; the id of the upload."""
    tus = {"Tus-Resumable": "1.0.0"}
    size = file.stat().st_size
    name = b64encode(file.name.encode()).decode()
    begun = curl(
        rig,
        "POST",
        "/api/v1/uploads",
        headers={**tus, "Upload-Length": str(size), "Upload-Metadata": f"filename {name}"},
    )
    location = header(begun, "Location")
    half = file.with_suffix(".half")
    half.write_bytes(file.read_bytes()[: size // 2])
    piece = {**tus, "Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"}
    # More is announced than comes: the connection breaks, and what came is kept.
    announced = {**piece, "Content-Length": str(size)}
    with pytest.raises(subprocess.CalledProcessError):
        curl(rig, "PATCH", location, "--max-time", "3", "--data-binary", f"@{half}", headers=announced)
    offset = int(header(curl(rig, "HEAD", location, "--head", headers=tus), "Upload-Offset"))
    assert 0 < offset <= size // 2

    rest = file.with_suffix(".rest")
    rest.write_bytes(file.read_bytes()[offset:])
    ended = curl(
        rig, "PATCH", location, "--data-binary", f"@{rest}", headers={**piece, "Upload-Offset": str(offset)}
    )
    assert header(ended, "Upload-Offset") == str(size)
    return location.rsplit("/", 1)[1]


def import_and_split(rig: Any, file: Path) -> dict[str, Any]:
    """A dataset with the rows of a file, in splits that a pipeline makes; a prompt is in one only."""
    source = {"kind": "upload", "upload": send_in_pieces(rig, file)}
    body = json.dumps({"name": "preferences", "source": source})
    answer = curl(
        rig, "POST", "/api/v1/datasets/imports", "-d", body, headers={"Content-Type": "application/json"}
    )
    made = json.loads(answer.partition("\n\n")[2])
    wait_for_dataset(rig.client, made["id"], timeout_s=120)
    split = {"mode": "grouped", "by": "prompt", "ratios": {"train": 0.8, "validation": 0.2}}
    pipeline = {"name": "split", "steps": [{"operator": "split", "params": split}]}
    run = rig.client.post("/pipelines/runs", {"pipeline": pipeline, "dataset": made["id"]})
    wait_for_task(rig.client, run["task"]["id"], timeout_s=120)
    return dict(rig.client.get(f"/datasets/{made['id']}"))


def test_dpo_learns_from_uploaded_pairs(rig: Any, tmp_path: Path) -> None:
    files = write_preferences(tmp_path, 2)
    together = tmp_path / "pairs.jsonl"
    together.write_bytes(
        b"".join(files[f"preference_{name}"].read_bytes() for name in ("train", "validation"))
    )
    dataset = import_and_split(rig, together)
    assert dataset["format"] == "preference"
    assert set(dataset["splits"]) == {"train", "validation"}

    request = {
        "name": "DPO",
        "recipe": "dpo",
        "preset": demo.PRESET,
        "model": rig.starter()["model"],
        "dataset": dataset["id"],
        "dataset_version": dataset["head"][:12],
        "dataset_split": "train",
        "validation_split": "validation",
        "params": {"total_steps": STEPS, "validate_every": 6},
    }
    job = str(rig.client.post("/jobs", request)["id"])
    rig.wait_for_state(job, "succeeded")

    named = rig.job(job)
    assert (named["dataset_version"], named["dataset_split"]) == (dataset["head"], "train")
    assert (named["validation_version"], named["validation_split"]) == (dataset["head"], "validation")
    lineage = rig.client.get(f"/datasets/{dataset['id']}/lineage")
    assert job in {node["id"] for node in lineage["nodes"]}
    assert {edge["role"] for edge in lineage["edges"] if edge["target"] == job} >= {"data", "validation"}
    metrics = rig.stored_metrics(job)
    accuracy = {step: value for (key, step), value in metrics.items() if key == "eval_rewards/accuracies"}
    assert list(accuracy) == [0, 6, 12]
    # Against itself a model prefers nothing; a model of random weights soon learns not to hedge.
    assert accuracy[0] == 0
    assert accuracy[12] > 0.6
    (checkpoint,) = rig.client.pages(f"/jobs/{job}/checkpoints")
    assert checkpoint["step"] == STEPS
    source = {"kind": "checkpoint", "job_id": job, "step": STEPS}
    model = rig.client.post("/models", {"name": "prefers sums", "source": source})
    assert model["state"] == "ready"
    assert model["has_chat_template"]
    rig.expect_nothing_left(job)
