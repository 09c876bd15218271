"""Runs spread over several slots: the steps of one slot, one voice, and an end when a rank dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import EXIT_STOPPED, EXIT_SUCCEEDED
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_train.entrypoint import ENGINE_MODULES
from trellis_train.starter.__main__ import main as make_starter
from trellis_train.supervise.failure_causes import judge

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
SLOTS, STEPS = 2, 8
#: What every engine is asked for: the same rows at each step, whatever the number of slots.
PARAMS: dict[str, dict[str, Any]] = {
    "sft": {"validate_every": 0, "validation_rows": 0, "learning_rate": 2e-3},
    "dpo": {"validate_every": 0, "validation_rows": 0, "learning_rate": 5e-4, "micro_batch_size": 8},
}
#: Measured at every step; sums over the ranks are rounded in another order than those of one.
MEASURED = {
    "sft": ("train/loss", "train/grad_norm", "train/global_tokens", "train/lr"),
    "dpo": ("loss", "grad_norm", "rewards/margins", "logps/chosen", "num_tokens", "learning_rate"),
}
ROUNDING = {"rel": 1e-4, "abs": 1e-5}
STARTING = [
    pytest.param("sft", marks=pytest.mark.proves("sft")),
    pytest.param("dpo", marks=pytest.mark.proves("dpo")),
]


class SlotRuns:
    """Short runs on an untrained model, on one slot or on several."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_starter(["--model", str(folder / "model"), "--data", str(folder / "data"), "--seed", "0"])

    def compose(self, name: str, recipe: str, *, gpus: int = SLOTS, **attempt: Any) -> EngineRun:
        files = {"sft": ("sft", DataFormat.PROMPT_ANSWER), "dpo": ("preference_train", DataFormat.PREFERENCE)}
        file, form = files[recipe]
        return compose_job(
            self._folder / name,
            recipe=recipe,
            model=self._folder / "model",
            rows=Rows.from_json_lines(self._folder / "data" / f"{file}.jsonl", form),
            params={**PARAMS[recipe], "total_steps": STEPS},
            seed=3,
            gpus=gpus,
            **attempt,
        )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> SlotRuns:
    return SlotRuns(tmp_path_factory.mktemp("slots"))


def reach_step(run: EngineRun, step: int, then: Callable[[], None]) -> int:
    """Start the run, do something when it has taken that step, and wait; its exit code."""
    command = [sys.executable, "-m", ENGINE_MODULES[run.spec.engine], str(run.folder / "spec.json")]
    with (run.folder / "log").open("wb") as log:
        engine = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    while engine.poll() is None and max(steps_of(run), default=0) < step:
        time.sleep(0.05)
    then()
    return engine.wait(timeout=120)


def steps_of(run: EngineRun) -> list[int]:
    return list(run.curve(MEASURED[run.spec.recipe][0]))


def processes_of(run: EngineRun) -> dict[int, str]:
    """The attempt's live processes by their id, with their rank."""
    found = {}
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            lines = environ.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it ended, or it is somebody else's
        values = dict(line.partition("=")[::2] for line in lines)
        if values.get("TRELLIS_ATTEMPT_DIR") == run.spec.attempt_dir:
            found[int(environ.parent.name)] = values.get("RANK", "")
    return found


@pytest.mark.parametrize("recipe", STARTING)
def test_several_slots_take_the_steps_of_one_with_a_stop_in_between(recipe: str, runs: SlotRuns) -> None:
    alone = run_engine(runs.compose(f"{recipe}_alone", recipe, gpus=1))

    first = runs.compose(f"{recipe}_together", recipe)
    exit_code = reach_step(first, 2, (first.folder / "stop").touch)

    assert exit_code == EXIT_STOPPED, first.log[-5000:]
    stopped_at = first.checkpoint()["step"]
    assert steps_of(first) == list(range(1, stopped_at + 1))
    assert stopped_at < STEPS
    second = run_engine(
        runs.compose(f"{recipe}_together", recipe, attempt=2, resume_from=first.checkpoint()["path"])
    )
    assert steps_of(second) == list(range(stopped_at + 1, STEPS + 1))
    for key in MEASURED[recipe]:
        together = first.curve(key) | second.curve(key)
        assert together == pytest.approx(alone.curve(key), **ROUNDING), key
    assert weights_of(second) == pytest.approx(weights_of(alone), abs=2e-4)


@pytest.mark.parametrize("recipe", STARTING)
def test_only_the_first_rank_reports(recipe: str, runs: SlotRuns) -> None:
    run = run_engine(runs.compose(f"{recipe}_reports", recipe))

    assert [path.name for path in (run.folder / "events").iterdir()] == ["trainer.1.jsonl"]
    phases = [(event["phase"], event["step"]) for event in run.events("progress")]
    assert [step for phase, step in phases if phase == "training" and step] == list(range(1, STEPS + 1))
    assert phases[0] == ("loading", 0)
    assert phases[-1] == ("finished", STEPS)
    assert len(run.events("checkpoint")) == 1


def weights_of(run: EngineRun) -> list[float]:
    """Some of the last checkpoint's weights, as a model loaded from it has them."""
    from safetensors.torch import load_file

    state = load_file(Path(run.checkpoint()["hf_path"]) / "model.safetensors")
    return [float(tensor.flatten()[0]) for _, tensor in sorted(state.items())]


@pytest.mark.parametrize("recipe", STARTING)
def test_a_rank_that_dies_ends_the_run_and_leaves_nothing_behind(recipe: str, runs: SlotRuns) -> None:
    run = runs.compose(f"{recipe}_dies", recipe)

    def kill_a_rank() -> None:
        ranks = {rank: pid for pid, rank in processes_of(run).items()}
        assert {"0", "1"} <= ranks.keys(), run.log[-5000:]
        os.kill(ranks["1"], signal.SIGKILL)

    exit_code = reach_step(run, 1, kill_a_rank)

    verdict = judge(exit_code, run.log.splitlines()[-200:])
    assert exit_code not in (EXIT_SUCCEEDED, EXIT_STOPPED)
    assert (verdict.outcome, verdict.cause) == ("crashed", "worker_died")
    assert "rank 1 of 2 was killed by SIGKILL" in str(verdict.reason)
    assert processes_of(run) == {}
