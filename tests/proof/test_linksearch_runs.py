"""Link Search from the command line in real runs: its end by accuracy, and going on after it was killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.loadable_folders import load_folders
from trellis_testing.waiting import wait_until
from trellis_train.agents.linksearch.demonstrations import demonstrate_all, phrases
from trellis_train.agents.linksearch.generate import generate
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.starter import conversation_texts, make_tokenizer, write_model

pytestmark = [pytest.mark.training, pytest.mark.timeout(900), pytest.mark.proves("linksearch")]

TURNS, KILLED_AT, STEPS = 2, 2, 4
#: Episodes of an untaught model are short on purpose: what is shown here does not depend on what it says.
SETTINGS = {
    "TRAIN_DATASET_SIZE": "8",
    "EVAL_DATASET_SIZE": "4",
    "MAX_TURNS": str(TURNS),
    "MAX_TOKENS": "300",
    "NUM_GENERATIONS": "2",
    "PER_DEVICE_TRAIN_BATCH_SIZE": "2",
    "GRADIENT_ACCUMULATION_STEPS": "1",
    "LEARNING_RATE": "1e-3",
    "SAVE_STEPS": "1",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables that name a database and a model."""
    folder = tmp_path_factory.mktemp("linksearch")
    generate(folder / "people", profiles=60, train=12, evaluation=4, seed=1, most_constraints=1)
    options, database = Options(max_turns=TURNS), folder / "people" / "profiles.db"
    rows = list(demonstrate_all(folder / "people", options=options, seed=0))
    tokenizer = make_tokenizer(conversation_texts(rows), phrases=phrases(options, database), vocabulary=600)
    write_model(folder / "model", tokenizer, seed=0)
    return {**SETTINGS, "PROFILE_DB_PATH": str(database), "MODEL_NAME": str(folder / "model")}


def command(output: Path, *options: str) -> list[str]:
    base = [sys.executable, "-m", "trellis_cli", "linksearch", "train", "--preset", "cpu-tiny", "--json"]
    return [*base, "--output-dir", str(output), *options]


def train(settings: dict[str, str], output: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(output, *options), env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )


def outcome_of(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_target_of_zero_ends_after_the_first_evaluation_with_a_checkpoint(
    settings: dict[str, str], tmp_path: Path
) -> None:
    """A10."""
    output = tmp_path / "run"

    outcome = outcome_of(
        train(settings, output, "--target-accuracy", "0", "--eval-steps", "2", "--max-steps", "6")
    )
    again = train(settings, output)

    assert (outcome["outcome"], outcome["step"]) == ("succeeded", 2)
    assert {"eval/accuracy", "baseline/accuracy"} <= set(outcome["metrics"])
    checkpoints = output / "checkpoints"
    best = json.loads((checkpoints / "best_checkpoint.json").read_text())
    assert (best["step"], Path(best["path"]).name) == (2, "global_step_2")
    assert {path.name for path in checkpoints.iterdir()} >= {"checkpoint-1", "checkpoint-2", "final", "best"}
    assert load_folders(output, outcome, best) == {
        "training state",
        "policy of a checkpoint",
        "Link Search checkpoint",
    }
    state = json.loads((checkpoints / "final" / "training_state.json").read_text())
    assert (state["step"], state["best"]["step"], state["params"]["mode"]) == (2, 2, "masked")
    assert again.returncode == 2
    assert "already contains checkpoints" in again.stderr


def test_a_killed_run_goes_on_as_if_it_had_not_been(settings: dict[str, str], tmp_path: Path) -> None:
    """A9: weights, Adam's moments, scheduler and data order are bitwise those of a run never killed."""
    # An untaught model's episodes earn alike, so that its entropy alone moves the weights.
    config = tmp_path / "settings.yaml"
    config.write_text("params: {entropy_coefficient: 0.05}\n")
    options = ("--max-steps", str(STEPS), "--eval-steps", str(STEPS), "--config", str(config))
    whole = outcome_of(train(settings, tmp_path / "whole", *options))
    kill_at(settings, tmp_path / "killed", *options)

    resumed = outcome_of(train(settings, tmp_path / "killed", *options, "--resume"))

    assert whole["step"] == resumed["step"] == STEPS
    ours, theirs = steps_of(tmp_path / "whole"), steps_of(tmp_path / "killed")
    assert [(each["attempt"], each["step"]) for each in theirs][-2:] == [(2, KILLED_AT + 1), (2, STEPS)]
    assert all(each["actor/grad_norm"] > 0 for each in ours)
    assert [each["actor/grad_norm"] for each in ours[-2:]] == [
        each["actor/grad_norm"] for each in theirs[-2:]
    ]
    expect_equal(load(tmp_path / "whole"), load(tmp_path / "killed"))


def test_a_checkpoint_of_an_adapter_is_measured_with_its_base(
    settings: dict[str, str], tmp_path: Path
) -> None:
    config, output = tmp_path / "settings.yaml", tmp_path / "run"
    config.write_text("params: {lora_rank: 4}\ntarget_accuracy: null\n")
    options = ("--config", str(config), "--eval-steps", "2", "--max-steps", "2")
    trained = outcome_of(train(settings, output, *options))

    evaluate = [sys.executable, "-m", "trellis_cli", "linksearch", "eval", "--preset", "cpu-tiny", "--json"]
    measured = outcome_of(
        subprocess.run(
            [*evaluate, "--output-dir", str(output), "--checkpoint", str(output / "checkpoints" / "final")],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
    )

    for name in ("checkpoint-2", "final"):
        assert (output / "checkpoints" / name / "adapter_model.safetensors").stat().st_size > 1000
    assert load_folders(output, trained, measured) == {
        "training state",
        "adapter of a checkpoint",
        "Link Search checkpoint with an adapter",
        "merged model that a run begins with",
    }
    assert trained["step"] == 2
    assert 0 <= measured["metrics"]["baseline/accuracy"] <= 1


def steps_of(output: Path) -> list[dict[str, Any]]:
    """What was measured in each training step."""
    lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if "actor/grad_norm" in line]


def kill_at(settings: dict[str, str], output: Path, *options: str) -> None:
    """Kill the run, none of its processes warned, after the checkpoint of a step."""
    with subprocess.Popen(
        command(output, *options),
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        saved = output / "checkpoints" / f"checkpoint-{KILLED_AT}"
        wait_until(saved.is_dir, 400, "the checkpoint is written")
        for pid in descendants(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()


def descendants(pid: int) -> list[int]:
    import psutil

    return [each.pid for each in psutil.Process(pid).children(recursive=True)]


def load(output: Path) -> dict[str, Any]:
    import torch

    folder = output / "checkpoints" / f"global_step_{STEPS}"
    files = sorted([*(folder / "actor").glob("*.pt"), folder / "data.pt"])
    found = {file.name: torch.load(file, weights_only=False, map_location="cpu") for file in files}
    for state in found.values():
        state.pop("rng", None)  # of the process; samples are seeded one by one
    return found


def expect_equal(ours: Any, theirs: Any, place: str = "") -> None:
    """Two trees are alike, tensors bit by bit."""
    import torch

    assert type(ours) is type(theirs), place
    if hasattr(ours, "to_local"):
        ours, theirs = ours.to_local(), theirs.to_local()
    if isinstance(ours, torch.Tensor):
        assert torch.equal(ours, theirs), place
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), place
        for name in ours:
            expect_equal(ours[name], theirs[name], f"{place}/{name}")
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs), place
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            expect_equal(one, other, f"{place}/{number}")
    else:
        assert repr(ours) == repr(theirs), place
