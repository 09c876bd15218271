"""Checkpoints that real runs have left, and the exports of them by the engine."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import DataFormat
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_testing.exports import Exported, run_export
from trellis_train.starter.__main__ import main as make_starter

STEPS = 3
PARAMS = {
    "total_steps": STEPS,
    "save_every": 0,
    "validate_every": 0,
    "validation_rows": 0,
    "learning_rate": 5e-3,
}


@dataclasses.dataclass(frozen=True)
class Trained:
    """A model, and a run that has trained it."""

    base: Path
    run: EngineRun

    @property
    def checkpoint(self) -> Path:
        return Path(self.run.checkpoint()["path"])


Export = Callable[..., Exported]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter model with random weights, and its lessons."""
    folder = tmp_path_factory.mktemp("base")
    make_starter(["--model", str(folder / "model"), "--data", str(folder / "data"), "--seed", "0"])
    return folder / "model"


@pytest.fixture(scope="session")
def lessons(base: Path) -> Rows:
    return Rows.from_json_lines(base.parent / "data" / "sft.jsonl", DataFormat.PROMPT_ANSWER)


@pytest.fixture(scope="session")
def with_adapter(base: Path, lessons: Rows, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A LoRA run."""
    run = compose_job(
        tmp_path_factory.mktemp("job_lora"),
        recipe="sft",
        model=base,
        rows=lessons,
        params={**PARAMS, "lora_rank": 4, "lora_alpha": 12},
    )
    return Trained(base, run_engine(run))


@pytest.fixture(scope="session")
def whole(base: Path, lessons: Rows, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A run of the whole model, which keeps shards and a folder in Hugging Face format."""
    run = compose_job(
        tmp_path_factory.mktemp("job_whole"), recipe="sft", model=base, rows=lessons, params=PARAMS
    )
    return Trained(base, run_engine(run))


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Run the export engine as a job does."""

    def start(checkpoint: Path, *, base: Path | None, **choices: Any) -> Exported:
        return run_export(tmp_path, checkpoint, base=base, step=STEPS, **choices)

    return start
