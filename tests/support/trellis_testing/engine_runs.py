"""Jobs run by their engine alone: composed as the platform composes them, read from their event spool."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.attempt import EVENTS_FOLDER, PREPARED_FOLDER, SPEC_FILE, TRAIN_FILE
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import EXIT_SUCCEEDED, DataSource, JobSpec, ModelSource
from trellis_recipes.agents import make_agent_task
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import ComposeRequest, compose
from trellis_recipes.memory.architecture import find_architecture
from trellis_train.data.prepare import prepare
from trellis_train.entrypoint import ENGINE_MODULES

from trellis_testing.processes import read_stacks

LOG_FILE = "log"
#: Characters of the log's end that a failure shows.
LOG_TAIL = 5000


@dataclass(frozen=True)
class Rows:
    """A dataset: a Parquet file and what its rows are read as."""

    path: Path
    format: DataFormat

    @classmethod
    def from_json_lines(cls, source: Path, data_format: DataFormat) -> "Rows":
        """Write the rows of a JSON Lines file as Parquet beside it."""
        rows = [json.loads(line) for line in source.read_bytes().splitlines()]
        target = source.with_suffix(".parquet")
        pq.write_table(pa.Table.from_pylist(rows), target)
        return cls(target, data_format)

    def as_source(self) -> DataSource:
        count = pq.ParquetFile(self.path).metadata.num_rows
        return DataSource(
            dataset_id=self.path.stem, paths=[str(self.path)], format=self.format, sha256="0", row_count=count
        )


@dataclass
class EngineRun:
    """One attempt of a job."""

    spec: JobSpec
    config: dict[str, Any] = field(repr=False)
    seconds: float = 0.0

    @property
    def folder(self) -> Path:
        return Path(self.spec.attempt_dir)

    @property
    def log(self) -> str:
        return (self.folder / LOG_FILE).read_text(errors="replace")

    def events(self, kind: str) -> list[dict[str, Any]]:
        files = sorted((self.folder / EVENTS_FOLDER).glob("*.jsonl"))
        events = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
        return [event for event in events if event["kind"] == kind]

    def curve(self, key: str) -> dict[int, float]:
        """Return the values of a metric by step."""
        metrics = self.events("metrics")
        return {event["step"]: event["values"][key] for event in metrics if key in event["values"]}

    def metrics(self, step: int) -> dict[str, float]:
        """Return everything that was measured at a step."""
        found: dict[str, float] = {}
        for event in self.events("metrics"):
            if event["step"] == step:
                found |= event["values"]
        return found

    def held_out_accuracy(self, step: int) -> float:
        """Share of correct responses of an RL run to the validation prompts after ``step``."""
        names = {name for event in self.events("metrics") for name in event["values"]}
        (accuracy,) = (name for name in names if name.startswith("val-core/") and "/acc/mean" in name)
        return self.curve(accuracy)[step]

    def checkpoint(self, step: int | None = None) -> dict[str, Any]:
        """Return the event of the checkpoint at ``step``, or of the last one."""
        events = [event for event in self.events("checkpoint") if step in (None, event["step"])]
        return events[-1]


def compose_job(
    folder: Path,
    *,
    recipe: str,
    model: Path | str,
    rows: Rows,
    validation: Rows | None = None,
    params: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
    measured: Sequence[str] = (),
    seed: int = 0,
    gpus: int = 1,
    attempt: int = 1,
    resume_from: str | None = None,
    environment: Path | None = None,
    workflow: Path | None = None,
    preset: str = "cpu-tiny",
) -> EngineRun:
    """Compose an attempt of a CPU job, prepare its data and write its spec; nothing runs yet.

    ``measured`` holds engine overrides that no person could set, for what a test wants to read;
    ``environment`` and ``workflow`` are what an agent works with.
    """
    attempt_dir = folder / f"attempt-{attempt}"
    prepared = attempt_dir / PREPARED_FOLDER
    prepared.mkdir(parents=True)
    composition = compose(
        ComposeRequest(
            recipe=recipe,
            preset=preset,
            params={**_name_resources(environment, workflow), **(params or {})},
            overrides=dict(overrides or {}),
            platform="cpu",
            gpus=gpus,
            model_path=str(model),
            architecture=find_architecture(Path(model)),
            train_path=str(prepared / TRAIN_FILE),
            validation_path=str(prepared / "validation.parquet") if validation else None,
            checkpoint_dir=str(folder / "checkpoints"),
            seed=seed,
            row_count=rows.as_source().row_count,
            resume_from=resume_from,
        )
    )
    assert composition.errors == [], composition.errors
    spec = JobSpec(
        job_id=folder.name,
        attempt=attempt,
        name=recipe,
        recipe=recipe,
        engine=composition.engine,
        platform="cpu",
        gpus=gpus,
        seed=seed,
        params=composition.params,
        engine_overrides=[*composition.engine_overrides, *measured],
        env=composition.env,
        model=ModelSource(model_id="model", path=str(model)),
        row_format=get_recipe(recipe).row_format,
        train_data=rows.as_source(),
        validation_data=validation.as_source() if validation else None,
        attempt_dir=str(attempt_dir),
        checkpoint_dir=str(folder / "checkpoints"),
        resume_from=resume_from,
        agent=make_agent_task(
            get_recipe(recipe),
            composition.params,
            environment_path=None if environment is None else str(environment),
            workflow_path=None if workflow is None else str(workflow),
        ),
        # Nobody listens: the engine writes to the spool, which only the entrypoint would send.
        ingest_url="http://127.0.0.1:9",
    )
    prepare(spec)
    (attempt_dir / SPEC_FILE).write_text(spec.model_dump_json())
    return EngineRun(spec, composition.config)


def _name_resources(environment: Path | None, workflow: Path | None) -> dict[str, str]:
    """Return the parameters of an agent that would contain ids of the platform."""
    given = {"environment": environment, "workflow": workflow}
    return {name: path.stem for name, path in given.items() if path is not None}


def outside_clusters() -> dict[str, str]:
    """Return this process's environment without the Ray cluster it may belong to, keeping Ray's priority."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RAY_") or name == "RAY_worker_niceness"
    }


def run_engine(
    run: EngineRun,
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 600,
    expected: int = EXIT_SUCCEEDED,
) -> EngineRun:
    """Run the attempt to its end; a failure shows the end of its log."""
    command = [sys.executable, "-m", ENGINE_MODULES[run.spec.engine], str(run.folder / SPEC_FILE)]
    started = time.monotonic()
    with (run.folder / LOG_FILE).open("wb") as log:
        process = subprocess.Popen(
            command, env={**outside_clusters(), **(environment or {})}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            stacks = read_stacks(run.folder)
            raise AssertionError(f"{run.spec.name}: runs still\n{run.log[-LOG_TAIL:]}\n{stacks}") from None
        finally:
            process.kill()
            process.wait()
    run.seconds = time.monotonic() - started
    assert code == expected, f"{run.spec.name}: exit code {code}\n{run.log[-LOG_TAIL:]}"
    return run
