"""Real supervised training of the starter model with verl, stopped and resumed."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import EXIT_STOPPED, EXIT_SUCCEEDED, DataSource, JobSpec, ModelSource
from trellis_recipes.compose import ComposeRequest, compose
from trellis_testing.without_layer import without_layer
from trellis_train.data.prepare import prepare
from trellis_train.starter.__main__ import main as make_starter

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]
STEPS = 18
#: 450 rows for training are 14 steps an epoch, so that the run crosses the end of one.
PARAMS = {
    "total_steps": STEPS,
    "save_every": 14,
    "validate_every": 6,
    "validation_rows": 50,
    "learning_rate": 2e-3,
}


class Run:
    """Attempts of one job, run by the engine alone."""

    def __init__(self, folder: Path, starter: Path, **params: Any) -> None:
        self.folder = folder
        self._starter = starter
        self._params = {**PARAMS, **params}

    def write_spec(self, attempt: int, resume_from: str | None = None) -> Path:
        attempt_dir = self.folder / f"attempt-{attempt}"
        attempt_dir.mkdir(parents=True)
        composition = compose(
            ComposeRequest(
                recipe="sft",
                params=self._params,
                platform="cpu",
                gpus=1,
                model_path=str(self._starter / "model"),
                train_path=str(attempt_dir / "prepared" / "train.parquet"),
                checkpoint_dir=str(self.folder / "checkpoints"),
                seed=3,
                resume_from=resume_from,
            )
        )
        assert composition.errors == []
        spec = JobSpec(
            job_id="job_sft",
            attempt=attempt,
            name="sft",
            recipe="sft",
            engine=composition.engine,
            platform="cpu",
            gpus=1,
            seed=3,
            params=composition.params,
            engine_overrides=composition.engine_overrides,
            env=composition.env,
            model=ModelSource(model_id="mdl_starter", path=str(self._starter / "model")),
            row_format=DataFormat.MESSAGES,
            train_data=DataSource(
                dataset_id="ds_sft",
                paths=[str(self._starter / "sft.parquet")],
                format=DataFormat.PROMPT_ANSWER,
                sha256="0",
                row_count=500,
            ),
            attempt_dir=str(attempt_dir),
            checkpoint_dir=str(self.folder / "checkpoints"),
            resume_from=resume_from,
            ingest_url="http://127.0.0.1:9",
        )
        prepare(spec)
        path = attempt_dir / "spec.json"
        path.write_text(spec.model_dump_json())
        return path

    def start(self, spec_path: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        log = (spec_path.parent / "log").open("wb")
        command = [sys.executable, "-m", "trellis_train.engines.sft", str(spec_path)]
        env = {**os.environ, **(environment or {})}
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env)

    def log(self, attempt: int) -> str:
        return (self.folder / f"attempt-{attempt}" / "log").read_text(errors="replace")[-3000:]

    def events(self, attempt: int, kind: str) -> Iterator[dict[str, Any]]:
        for path in sorted((self.folder / f"attempt-{attempt}" / "events").glob("*.jsonl")):
            for line in path.read_bytes().splitlines():
                event = json.loads(line)
                if event["kind"] == kind:
                    yield event

    def curve(self, attempt: int, key: str) -> dict[int, float]:
        metrics = self.events(attempt, "metrics")
        return {event["step"]: event["values"][key] for event in metrics if key in event["values"]}


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    make_starter(["--model", str(folder / "model"), "--data", str(folder), "--seed", "0"])
    rows = [json.loads(line) for line in (folder / "sft.jsonl").read_bytes().splitlines()]
    pq.write_table(pa.Table.from_pylist(rows), folder / "sft.parquet")
    return folder


@pytest.fixture(scope="module")
def uninterrupted(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("uninterrupted"), starter)
    exit_code = run.start(run.write_spec(1)).wait()
    assert exit_code == EXIT_SUCCEEDED, run.log(1)
    return run


@pytest.fixture(scope="module")
def stopped(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that is asked to stop after its second step, and then resumed to its end.

    Each of its steps is one to validate after, the one that it stops at, too.
    """
    run = Run(tmp_path_factory.mktemp("stopped"), starter, validate_every=1)
    engine = run.start(run.write_spec(1))
    while engine.poll() is None and max(run.curve(1, "train/loss"), default=0) < 2:
        time.sleep(0.05)
    (run.folder / "attempt-1" / "stop").touch()
    assert engine.wait() == EXIT_STOPPED, run.log(1)
    (checkpoint,) = run.events(1, "checkpoint")
    exit_code = run.start(run.write_spec(2, checkpoint["path"])).wait()
    assert exit_code == EXIT_SUCCEEDED, run.log(2)
    return run


def test_the_held_out_loss_falls(uninterrupted: Run) -> None:
    losses = uninterrupted.curve(1, "val/loss")

    assert list(losses) == [6, 12, 18]
    assert losses[18] < losses[12] < losses[6]


def test_without_what_makes_a_cpu_faster_it_learns_the_same(
    uninterrupted: Run, starter: Path, tmp_path: Path
) -> None:
    run = Run(tmp_path / "run", starter)

    engine = run.start(run.write_spec(1), without_layer(tmp_path / "refuses"))

    assert engine.wait() == EXIT_SUCCEEDED, run.log(1)
    found, expected = (each.curve(1, "train/loss") for each in (run, uninterrupted))
    assert found == pytest.approx(expected, rel=1e-3)


def test_every_step_is_reported(uninterrupted: Run) -> None:
    assert list(uninterrupted.curve(1, "train/loss")) == list(range(1, STEPS + 1))
    last = list(uninterrupted.events(1, "progress"))[-1]
    assert (last["phase"], last["step"], last["total_steps"]) == ("finished", STEPS, STEPS)


def test_where_the_time_of_the_steps_went_is_reported(uninterrupted: Run) -> None:
    steps = list(range(1, STEPS + 1))
    timelines = list(uninterrupted.events(1, "timeline"))

    assert list(uninterrupted.curve(1, "timing_s/train_batch")) == steps
    assert list(uninterrupted.curve(1, "timing_s/testing")) == [6, 12, 18]
    assert list(uninterrupted.curve(1, "timing_s/save_checkpoint")) == [14, STEPS]
    assert [event["step"] for event in timelines] == steps
    phases = [[span["phase"] for span in event["lanes"][0]["spans"]] for event in timelines]
    assert phases[0] == ["between", "train_batch"]
    assert phases[5] == ["between", "train_batch", "testing"]
    assert phases[-1][-1] == "save_checkpoint"


def test_a_checkpoint_can_be_loaded_as_a_model(uninterrupted: Run) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    checkpoints = list(uninterrupted.events(1, "checkpoint"))

    assert [event["step"] for event in checkpoints] == [14, STEPS]
    assert checkpoints[-1]["size_bytes"] > 3_000_000
    model = AutoModelForCausalLM.from_pretrained(checkpoints[-1]["hf_path"])
    assert model.num_parameters() > 700_000
    assert AutoTokenizer.from_pretrained(checkpoints[-1]["hf_path"]).chat_template


def test_a_stopped_run_leaves_at_a_checkpoint_of_its_last_step(stopped: Run) -> None:
    (checkpoint,) = stopped.events(1, "checkpoint")

    assert checkpoint["step"] == max(stopped.curve(1, "train/loss")) < STEPS
    assert max(stopped.curve(1, "val/loss")) == checkpoint["step"] - 1
    assert Path(checkpoint["path"]).is_dir()


def test_a_resumed_run_takes_the_steps_of_one_never_stopped(stopped: Run, uninterrupted: Run) -> None:
    first, second = stopped.curve(1, "train/loss"), stopped.curve(2, "train/loss")

    assert min(second) == max(first) + 1
    assert first | second == uninterrupted.curve(1, "train/loss")


def test_a_run_resumed_at_the_end_of_an_epoch_goes_on_with_the_next(
    starter: Path, uninterrupted: Run
) -> None:
    checkpoint = next(iter(uninterrupted.events(1, "checkpoint")))
    uninterrupted_losses = uninterrupted.curve(1, "train/loss")

    exit_code = uninterrupted.start(uninterrupted.write_spec(2, checkpoint["path"])).wait()

    assert exit_code == EXIT_SUCCEEDED, uninterrupted.log(2)
    expected = {step: loss for step, loss in uninterrupted_losses.items() if step > 14}
    assert uninterrupted.curve(2, "train/loss") == expected
