"""Checkpoints as models: the export engine, run as a job runs it."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

from trellis_contracts.attempt import EVENTS_FOLDER, SPEC_FILE, STOP_FILE
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import ExportForm, ExportTask, JobSpec, ModelSource
from trellis_recipes.platform_defaults import environment

from trellis_testing.engine_runs import outside_clusters


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


def run_export(
    folder: Path,
    checkpoint: Path,
    *,
    base: Path | None,
    step: int,
    form: ExportForm = "merged",
    engine: Engine = Engine.VERL_SFT,
    is_stopped: bool = False,
) -> Exported:
    """Export ``checkpoint`` below ``folder``; ``engine`` is the one that has written it."""
    attempt_dir = folder / "attempt-1"
    attempt_dir.mkdir(parents=True, exist_ok=True)
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
        checkpoint_dir=str(folder / "checkpoints"),
        export=ExportTask(
            job_id="job_source",
            engine=engine,
            step=step,
            checkpoint_path=str(checkpoint),
            form=form,
            output_path=str(folder / "models" / "mdl_made"),
        ),
        ingest_url="http://127.0.0.1:9",
    )
    (attempt_dir / SPEC_FILE).write_text(spec.model_dump_json())
    if is_stopped:
        (attempt_dir / STOP_FILE).touch()
    done = subprocess.run(
        [sys.executable, "-m", "trellis_train.engines.export", str(attempt_dir / SPEC_FILE)],
        env=outside_clusters(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Exported(spec, done.returncode, done.stdout + done.stderr)
