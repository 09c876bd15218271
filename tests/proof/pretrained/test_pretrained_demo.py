"""`trellis demo --model`: a pretrained model learns to sort messages, and a person can see it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from trellis_cli.client import ApiClient
from trellis_cli.demo.steps import measured_accuracies
from trellis_cli.services.platform import REPOSITORY_ROOT, python_command
from trellis_cli.services.ports import pick_free
from trellis_cli.watch import watch_job
from trellis_testing.pretrained import DEFAULT
from trellis_testing.proof_report import report_proof
from trellis_tools.proof import MODEL_VARIABLE

pytestmark = [pytest.mark.training, pytest.mark.timeout(3600), pytest.mark.proves("grpo", "sft")]
#: Of held-out messages sorted right, over a run with learning rate 0 on the same model.
LEAST_GAIN = 0.2
#: What the demonstration promises on two cores.
LIMIT_S = 25 * 60
#: The weights stay as they are, so one step is as good as all.
CONTROL = {"learning_rate": 0.0, "total_steps": 1, "validate_every": 1, "validate_before": True}


@pytest.mark.parametrize("seed", [1, 2])
def test_grpo_sorts_more_held_out_messages_right(seed: int, tmp_path: Path) -> None:
    model = os.environ.get(MODEL_VARIABLE) or DEFAULT
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRELLIS_", "RAY_"))}
    environment = {**kept, "TRELLIS_DATA_ROOT": str(tmp_path), "TRELLIS_PORT": str(pick_free(1)[0])}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            python_command("-m", "trellis_cli", *arguments),
            cwd=REPOSITORY_ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout

    try:
        result = json.loads(run("demo", "--model", model, "--seed", str(seed), "--json").splitlines()[-1])
        control = measure_control(
            f"http://127.0.0.1:{environment['TRELLIS_PORT']}", tmp_path, result["jobs"][-1]
        )
    finally:
        run("down")

    before, after = result["accuracy_before"], result["accuracy_after"]
    report_proof(
        f"demo, seed {seed}",
        measure="held-out accuracy",
        control=control,
        trained=after,
        seconds=result["seconds"],
    )
    assert after >= max(before, control) + LEAST_GAIN
    assert result["seconds"] <= LIMIT_S
    assert len(result["answers"]) == 3


def measure_control(url: str, data_root: Path, job: str) -> float:
    """Held-out accuracy of a clone of the job that learns nothing."""
    client = ApiClient(url, (data_root / "admin.token").read_text().strip())
    clone = client.post(f"/jobs/{job}/clone", {"params": CONTROL})["id"]
    ended = watch_job(client, clone)
    assert ended["state"] == "succeeded", ended["failure"]
    return measured_accuracies(client, clone)[1]
