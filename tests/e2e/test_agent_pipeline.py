"""`trellis agent pipeline` from warm-up to evaluation, and once more with nothing left to do."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from trellis_cli.demo import starter as demo
from trellis_cli.demo import steps
from trellis_testing.tool_use import make_tool_use

pytestmark = [pytest.mark.training, pytest.mark.timeout(1500)]
STAGES = ["warm-up", "sft", "retrieval", "rl", "evaluation"]
QUIET = {"total_steps": 2, "validate_every": 0, "save_every": 0}
SHORT = {"batch_size": 8, "validation_rows": 8}
SAMPLED = {
    "validate_before": False,
    "mini_batch_size": 8,
    "micro_batch_size": 8,
    "max_prompt_length": 1024,
    "max_response_length": 48,
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "warm-up": {**QUIET, **SHORT},
    "sft": {**QUIET, **SHORT},
    "retrieval": {**QUIET, **SHORT},
    "rl": {**QUIET, **SHORT, **SAMPLED},
}


def add_model(rig: Any) -> str:
    root = rig.platform.settings.data_root
    folder = make_tool_use(root / "starter" / "tools").model
    return str(
        steps.ensure_model(rig.client, "tool user", {"kind": "local", "path": str(folder.relative_to(root))})
    )


def run_pipeline(rig: Any, model: str, environment: str, name: str) -> dict[str, Any]:
    parameters = [
        part
        for stage, chosen in PARAMETERS.items()
        for parameter, value in chosen.items()
        for part in ("--set", f"{stage}.{parameter}={value}")
    ]
    command = [
        *(sys.executable, "-m", "trellis_cli", "agent", "pipeline", "--model", model),
        *("--environment", environment, "--preset", demo.PRESET, "--algorithm", "grpo", "--warm-up"),
        *("--limit", "8", "--name", name, *parameters, "--wait", "--json"),
    ]
    with rig.inside():
        done = subprocess.run(
            command, env=dict(os.environ), capture_output=True, text=True, timeout=900, check=False
        )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_all_stages_run_and_are_skipped_where_nothing_changed(rig: Any) -> None:
    made = rig.make_environment("tools", "toolbox", {"distractors": 0}, timeout_s=180)
    environment, model = str(made["id"]), add_model(rig)

    first = run_pipeline(rig, model, environment, "agent")
    assert [stage["id"] for stage in first["stages"]] == STAGES
    assert {stage["state"] for stage in first["stages"]} == {"succeeded"}
    *trained, measured = first["stages"]
    jobs = [rig.client.get(f"/jobs/{stage['job']['id']}") for stage in trained]
    assert [job["recipe"] for job in jobs] == ["agent_sft", "agent_sft", "agent_retrieval", "agent_grpo"]
    evaluation = rig.client.get(f"/evaluations/{measured['evaluation_id']}")
    (scores,) = evaluation["results"]
    assert {"overall", "tool_selection_accuracy"} <= {score["metric"] for score in scores["scores"]}

    again = run_pipeline(rig, model, environment, "again")
    assert {stage["state"] for stage in again["stages"]} == {"skipped"}
    assert {stage["reused_from"]["id"] for stage in again["stages"]} == {first["id"]}
