"""`trellis jobs import` against a real API process."""

import json
from pathlib import Path

import pytest
import yaml
from trellis_testing.commands import trellis
from trellis_tools.bench.light_platform import LightPlatform

SCRIPT = """#!/bin/bash
n=${N:-4}
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.model.path=$HOME/models/small \\
    actor_rollout_ref.rollout.n=$n \\
    actor_rollout_ref.rollout.name=sglang \\
    trainer.n_gpus_per_node=1 "$@"
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "first_run.sh"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_a_script_is_printed_as_a_job_with_what_was_left_out(platform: LightPlatform, script: Path) -> None:
    done = trellis(platform, "jobs", "import", str(script), "--model", platform.model)

    assert done.returncode == 0, done.stderr
    request = yaml.safe_load(done.stdout)
    assert (request["name"], request["recipe"], request["model"]) == ("first_run", "grpo", platform.model)
    assert request["params"]["group_size"] == 4
    assert "left out: actor_rollout_ref.rollout.name=sglang" in done.stderr
    assert "vllm" in done.stderr
    assert "model: the script names ~/models/small" in done.stderr


def test_a_script_is_launched(platform: LightPlatform, script: Path) -> None:
    choice = ("--model", platform.model, "--dataset", platform.dataset, "--preset", "cpu-tiny")

    done = trellis(platform, "jobs", "import", str(script), *choice, "--submit", "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["job"]["state"] == "queued"
    assert found["script"]["left_out"][0]["code"] == "unknown_choice"
    assert platform.client.get(f"/jobs/{found['job']['id']}")["params"]["group_size"] == 4


@pytest.mark.parametrize(
    ("arguments", "exit_code", "names"),
    [(("--submit",), 2, "--model"), (("--model", "no such model"), 4, "no such model")],
)
def test_what_a_launch_lacks_is_named(
    platform: LightPlatform, script: Path, arguments: tuple[str, ...], exit_code: int, names: str
) -> None:
    done = trellis(platform, "jobs", "import", str(script), *arguments)

    assert done.returncode == exit_code
    assert names in done.stderr
    assert "Traceback" not in done.stderr


def test_a_text_that_starts_nothing_is_refused(platform: LightPlatform) -> None:
    done = trellis(platform, "jobs", "import", "-", stdin="echo hello\n")

    assert done.returncode == 4
    assert "verl.trainer.main_ppo" in done.stderr
