"""A job for a benchmark: composed as the API composes it, run by its engine without the API around it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.attempt import EVENTS_FOLDER, PREPARED_FOLDER, SPEC_FILE, TRAIN_FILE
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import DataSource, JobSpec, ModelSource
from trellis_data.json_objects import read_objects
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.memory.architecture import find_architecture

from trellis_cli.bench.measured_command import run_measured
from trellis_cli.errors import Problem

SEED = 1


@dataclass(frozen=True)
class Material:
    """A model folder and rows, as JSON Lines."""

    model: Path
    rows: Path
    format: DataFormat = DataFormat.PROMPT_ANSWER

    @property
    def parquet(self) -> Path:
        """The same rows as a job reads them, written once."""
        target = self.rows.with_suffix(".parquet")
        if not target.exists():
            pq.write_table(pa.Table.from_pylist(list(read_objects(self.rows))), target)
        return target


@dataclass(frozen=True)
class EngineJob:
    """One attempt of a job below ``folder``; `run` trains it."""

    folder: Path
    material: Material
    recipe: str
    preset: str
    params: Mapping[str, Any]
    overrides: Mapping[str, Any] = field(default_factory=dict)
    ranks: int = 1

    @property
    def attempt(self) -> Path:
        """The attempt's directory."""
        return self.folder / "attempt-1"

    def run(self, engine_module: str, env: Mapping[str, str]) -> list[dict[str, Any]]:
        """Prepare the data, train, and return the metrics events in the order of the steps."""
        (self.attempt / PREPARED_FOLDER).mkdir(parents=True)
        file = self.attempt / SPEC_FILE
        file.write_text(self._make_spec().model_dump_json())
        run_measured("-m", "trellis_train.data", str(file), log=self.folder / "data.log", env=env)
        run_measured("-m", engine_module, str(file), log=self.attempt / "log", env=env)
        return read_metrics(self.attempt)

    def _compose(self) -> Composition:
        """The composed configuration; raises `Problem` for one that is not valid."""
        composition = compose(
            ComposeRequest(
                recipe=self.recipe,
                preset=self.preset,
                params=dict(self.params),
                overrides=dict(self.overrides),
                platform="cpu",
                gpus=self.ranks,
                model_path=str(self.material.model),
                architecture=find_architecture(self.material.model),
                train_path=str(self.attempt / PREPARED_FOLDER / TRAIN_FILE),
                checkpoint_dir=str(self.folder / "checkpoints"),
                seed=SEED,
                row_count=pq.read_metadata(self.material.parquet).num_rows,
            )
        )
        if composition.errors:
            raise Problem("; ".join(issue.message for issue in composition.errors))
        return composition

    def _make_spec(self) -> JobSpec:
        composition = self._compose()
        parquet = self.material.parquet
        return JobSpec(
            job_id="job_benchmark",
            attempt=1,
            name="benchmark",
            recipe=self.recipe,
            engine=composition.engine,
            platform="cpu",
            gpus=self.ranks,
            seed=SEED,
            params=composition.params,
            engine_overrides=composition.engine_overrides,
            env=composition.env,
            model=ModelSource(model_id="model", path=str(self.material.model)),
            trains_on=get_recipe(self.recipe).trains_on,
            train_data=DataSource(
                dataset_id=parquet.stem,
                paths=[str(parquet)],
                format=self.material.format,
                sha256="0",
                row_count=pq.read_metadata(parquet).num_rows,
            ),
            attempt_dir=str(self.attempt),
            checkpoint_dir=str(self.folder / "checkpoints"),
            ingest_url="http://127.0.0.1:9",
        )


def read_metrics(attempt: Path) -> list[dict[str, Any]]:
    """The metrics events of a run, in the order of its steps."""
    files = sorted((attempt / EVENTS_FOLDER).glob("*.jsonl"))
    events = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    return [event for event in events if event["kind"] == "metrics"]
