"""Checkpoints that real runs have left, and the exports of them by the engine."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_contracts.attempt import EVENTS_FOLDER, SPEC_FILE
from trellis_contracts.recipe import DataFormat, Engine
from trellis_contracts.spec import ExportForm, ExportTask, JobSpec, ModelSource
from trellis_recipes.platform_defaults import environment
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
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


@dataclasses.dataclass(frozen=True)
class Exported:
    """An export that has ended."""

    spec: JobSpec
    exit_code: int
    log: str

    @property
    def output(self) -> Path:
        assert self.spec.export is not None
        return Path(self.spec.export.output_path)

    def phases(self) -> list[tuple[str, int]]:
        files = sorted((Path(self.spec.attempt_dir) / EVENTS_FOLDER).glob("exporter.*.jsonl"))
        events = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
        return [(event["phase"], event["step"]) for event in events]


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

    def start(
        checkpoint: Path,
        *,
        base: Path | None,
        form: ExportForm = "merged",
        engine: Engine = Engine.VERL_SFT,
        is_stopped: bool = False,
    ) -> Exported:
        attempt_dir = tmp_path / "attempt-1"
        attempt_dir.mkdir(exist_ok=True)
        spec = JobSpec(
            job_id="job_export",
            attempt=1,
            name="export",
            recipe="sft",
            engine=Engine.EXPORT,
            platform="cpu",
            gpus=0,
            seed=0,
            params={},
            engine_overrides=[],
            env=environment(Engine.EXPORT, "cpu"),
            model=ModelSource(model_id="mdl_base", path=str(base) if base else ""),
            attempt_dir=str(attempt_dir),
            checkpoint_dir=str(tmp_path / "checkpoints"),
            export=ExportTask(
                job_id="job_source",
                engine=engine,
                step=STEPS,
                checkpoint_path=str(checkpoint),
                form=form,
                output_path=str(tmp_path / "models" / "mdl_made"),
            ),
            ingest_url="http://127.0.0.1:9",
        )
        (attempt_dir / SPEC_FILE).write_text(spec.model_dump_json())
        if is_stopped:
            (attempt_dir / "stop").touch()
        done = subprocess.run(
            [sys.executable, "-m", "trellis_train.engines.export", str(attempt_dir / SPEC_FILE)],
            env={name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Exported(spec, done.returncode, done.stdout + done.stderr)

    return start
