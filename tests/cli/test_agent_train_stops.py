"""`trellis agent train` that is asked to leave: it saves a checkpoint, says so, and ends with 0."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from trellis_cli.agent_sources import find_model
from trellis_testing.tool_use import make_tool_use
from trellis_testing.waiting import wait_until

STEPS = 400


@pytest.mark.training
@pytest.mark.timeout(600)
def test_sigterm_leaves_at_a_checkpoint_that_can_be_trained_further(tmp_path: Path) -> None:
    tool_use = make_tool_use(tmp_path / "tool_use")
    output = tmp_path / "run"
    command = [
        *(sys.executable, "-m", "trellis_cli", "agent", "train", "sft", "--json"),
        *("--base-model", str(tool_use.model), "--output", str(output)),
        *("--data", str(tool_use.rows("sft", "train", 400).path), "--preset", "cpu-tiny"),
        *("--set", f"total_steps={STEPS}", "--set", "batch_size=4", "--set", "save_every=0"),
        *("--set", "validation_rows=0", "--set", "validate_every=0"),
    ]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        metrics = output / "metrics.jsonl"
        # What is known of the data is written before, at step 0.
        wait_until(
            lambda: metrics.exists() and '"step": 1,' in metrics.read_text(), 300, "the first step is done"
        )
        process.send_signal(signal.SIGTERM)
        printed, told = process.communicate(timeout=240)

    outcome = json.loads(printed)
    assert (process.returncode, outcome["outcome"]) == (0, "stopped"), told
    assert "stopping after this step" in told
    assert 1 <= outcome["step"] < STEPS
    assert outcome["step"] == int(Path(outcome["checkpoint"]).name.removeprefix("global_step_"))
    assert all(
        each["loss"] > 0 for each in map(json.loads, metrics.read_text().splitlines()) if "loss" in each
    )
    trained = Path(find_model(str(output), scratch=tmp_path / "scratch"))
    before, after = (load_file(folder / "model.safetensors") for folder in (tool_use.model, trained))
    assert any(not after[name].equal(before[name]) for name in before)
    assert running_in(output) == []


def running_in(folder: Path) -> list[str]:
    """Processes that name the folder on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:  # it has just ended
            continue
        if str(folder).encode() in line:
            found.append(line.decode(errors="replace"))
    return found
