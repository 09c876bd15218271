"""An agent from its environment to its episodes, as two stages of a pipeline; run again, both are skipped."""

import subprocess
import sys
from typing import Any

import pytest
from trellis_cli.demo import starter as demo
from trellis_cli.demo import steps
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
PARAMETERS = {"profiles": 60, "train": 16, "eval": 4, "most_constraints": 1}
STEPS = 2


def call(rig: Any, environment: str, tool: str, **arguments: Any) -> dict[str, Any]:
    place = f"/environments/{environment}/calls"
    asked = rig.client.post(place, {"tool": tool, "arguments": arguments})

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = rig.client.get(f"{place}/{asked['id']}")
        return found if found["state"] in ("succeeded", "failed") else None

    found = wait_until(look, 60, "the tool has answered", pause_s=0.2)
    assert found is not None
    return found


def add_starter(rig: Any, environment: str) -> tuple[str, str]:
    """A small model whose tokenizer knows the environment, and a dataset of demonstrations; their ids."""
    root = rig.platform.settings.data_root
    folder, rows = root / "starter" / "agent", root / "starter" / "demonstrations.jsonl"
    phrases = root / "starter" / "phrases.json"
    rows.parent.mkdir(parents=True, exist_ok=True)
    content = root / "environments" / environment / "content"
    module = "trellis_train.agents.linksearch.demonstrations"
    run(module, str(content), "--rows", str(rows), "--phrases", str(phrases), "--max-turns", "3")
    made = ("--rows", str(rows), "--phrases", str(phrases), "--model", str(folder))
    run("trellis_train.agents.starter", *made)
    source = {"kind": "local", "path": str(folder.relative_to(root))}
    model = steps.ensure_model(rig.client, "agent starter", source)
    return model, str(steps.ensure_dataset(rig.client, rows, "demonstrations"))


def run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def wait_for_pipeline(rig: Any, pipeline_id: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = rig.client.get(f"/job-pipelines/{pipeline_id}")
        return found if found["state"] in ("succeeded", "failed", "stopped") else None

    found = wait_until(look, 420, "the pipeline is over", pause_s=0.3)
    assert found is not None
    return found


def test_an_environment_a_pipeline_and_its_episodes(rig: Any) -> None:
    """B11 and the way of an agent through the whole platform."""
    environment = rig.make_environment("people", "linksearch", PARAMETERS)
    (rows,) = environment["datasets"]
    assert rows["splits"] == {"train": 16, "eval": 4}
    answer = call(rig, environment["id"], "search_profile", sql="SELECT name FROM profiles", max_rows=2)
    hostile = call(rig, environment["id"], "search_profile", sql="ATTACH 'x' AS y")
    assert (answer["result_count"], hostile["error"]) == (2, "NOT_SELECT")

    model, demonstrations = add_starter(rig, environment["id"])
    quiet = {"validate_every": 0, "save_every": 0}
    stages = [
        {
            "id": "sft", "recipe": "sft", "preset": demo.PRESET, "dataset": demonstrations,
            "model": {"base": model}, "params": {**quiet, "total_steps": STEPS, "max_length": 2048},
        },
        {
            "id": "search", "recipe": "linksearch", "preset": demo.PRESET, "exports": False,
            "model": {"stage": "sft"}, "dataset": rows["dataset"]["id"], "validation_split": "eval",
            "params": {
                **quiet, "environment": environment["id"], "total_steps": STEPS, "max_turns": 3,
                "batch_size": 4, "mini_batch_size": 4, "group_size": 2, "validate_before": False,
                "max_prompt_length": 1024, "max_response_length": 512,
            },
        },
    ]  # fmt: skip
    first = rig.client.post("/job-pipelines", {"name": "agent", "stages": stages})
    found = wait_for_pipeline(rig, first["id"])
    assert found["state"] == "succeeded", found["stages"]
    assert [stage["state"] for stage in found["stages"]] == ["succeeded", "succeeded"]

    expect_episodes(rig, found["stages"][1]["job"]["id"])

    again = rig.client.post("/job-pipelines", {"name": "agent again", "stages": stages})
    skipped = wait_for_pipeline(rig, again["id"])
    assert [stage["state"] for stage in skipped["stages"]] == ["skipped", "skipped"]
    assert skipped["stages"][0]["model"] == found["stages"][0]["model"]
    assert {stage["reused_from"]["id"] for stage in skipped["stages"]} == {first["id"]}


def expect_episodes(rig: Any, job_id: str) -> None:
    """Every step has episodes, listed without their turns and read one by one with them."""
    steps = rig.client.get(f"/jobs/{job_id}/rollout-steps", split="train")
    assert [each["step"] for each in steps] == list(range(1, STEPS + 1))
    listed = rig.client.get(f"/jobs/{job_id}/rollouts", step=1)
    assert all(each["trajectory"] is None for each in listed["items"])
    reasons = rig.client.get(f"/jobs/{job_id}/rollout-summary", step=1)["stop_reasons"]
    assert sum(reasons.values()) == len(listed["items"]) == listed["total"]
    reason = next(iter(reasons))
    chosen = rig.client.get(f"/jobs/{job_id}/rollouts", step=1, stop_reason=reason)["items"]
    assert len(chosen) == reasons[reason]
    one = rig.client.get(f"/jobs/{job_id}/rollouts/{chosen[0]['id']}")
    turns = one["trajectory"]["turns"]
    assert len(turns) == one["turn_count"] > 1
    assert {turn["is_trained"] for turn in turns if turn["role"] == "assistant"} == {True}
    assert "agent/turns/mean" in {each["key"] for each in rig.client.get(f"/jobs/{job_id}/metric-keys")}
