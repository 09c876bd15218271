"""A job for a benchmark: composed as the API composes it, run by its engine without the API around it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from trellis_cli.local_job import LocalJob, LocalRows, write_spec
from trellis_contracts.attempt import EVENTS_FOLDER, SPEC_FILE
from trellis_contracts.recipe import DataFormat

from trellis_tools.bench.measured_command import run_measured

SEED = 1
#: Of every process that is measured: tokenizers that fork say so otherwise.
QUIET: Mapping[str, str] = {"TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Material:
    """A model folder and rows with ``prompt`` and ``answer``, as JSON Lines."""

    model: Path
    rows: Path


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

    def run(self, engine_module: str, env: Mapping[str, str] = QUIET) -> list[dict[str, Any]]:
        """Prepare the data, train, and return the metrics events in the order of the steps."""
        spec = write_spec(
            LocalJob(
                folder=self.folder,
                recipe=self.recipe,
                model=str(self.material.model),
                train=LocalRows(self.material.rows, DataFormat.PROMPT_ANSWER),
                preset=self.preset,
                params=self.params,
                overrides=self.overrides,
                seed=SEED,
                platform="cpu",
                gpus=self.ranks,
            )
        )
        attempt = Path(spec.attempt_dir)
        file = attempt / SPEC_FILE
        run_measured("-m", "trellis_train.data", str(file), log=self.folder / "data.log", env=env)
        run_measured("-m", engine_module, str(file), log=attempt / "log", env=env)
        return read_metrics(attempt)


def adapter_params(rank: int) -> dict[str, int]:
    """Return the parameters for training an adapter of this rank; empty for rank 0."""
    return {"lora_rank": rank, "lora_alpha": 2 * rank} if rank else {}


def read_metrics(attempt: Path) -> list[dict[str, Any]]:
    """Read the metrics events of a run, in the order of its steps."""
    files = sorted((attempt / EVENTS_FOLDER).glob("*.jsonl"))
    events = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    return [event for event in events if event["kind"] == "metrics"]


def seconds_of(event: Mapping[str, Any]) -> float:
    """Return when an event was written, in seconds."""
    return datetime.fromisoformat(event["time"]).timestamp()
