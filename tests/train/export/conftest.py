"""Checkpoints that real runs have left, and the exports of them by the engine."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import EXIT_SUCCEEDED
from trellis_data.samples.preferences import write_preferences
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
Prefer = Callable[[str, dict[str, int]], EngineRun]


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


@pytest.fixture(scope="session")
def prefer(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Prefer:
    """Train some steps in this process, which saves a start; each recipe once with and without an adapter."""
    files = write_preferences(tmp_path_factory.mktemp("pairs"), 1)
    pairs = Rows.from_json_lines(files["preference_train"], DataFormat.PREFERENCE)
    params = {name: value for name, value in PARAMS.items() if name != "save_every"}
    done: dict[tuple[str, bool], EngineRun] = {}

    def run(recipe: str, adapter: dict[str, int]) -> EngineRun:
        from trellis_train.engines import trl

        key = (recipe, bool(adapter))
        if key not in done:
            folder = tmp_path_factory.mktemp(f"job_{recipe}")
            job = compose_job(folder, recipe=recipe, model=base, rows=pairs, params={**params, **adapter})
            with patch.dict(os.environ):
                assert trl.main([str(job.folder / "spec.json")]) == EXIT_SUCCEEDED
            done[key] = job
        return done[key]

    return run


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Run the export engine as a job does."""

    def start(checkpoint: Path, *, base: Path | None, **choices: Any) -> Exported:
        return run_export(tmp_path, checkpoint, base=base, step=STEPS, **choices)

    return start
