"""Evaluations on one engine: a process that starts vLLM once and runs one attempt after the other on it.

``python -m trellis_testing.evaluation_runs <plan.json>`` runs a list of attempts (``Attempt``) and prints
their exit codes as JSON.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import EVENTS_FOLDER, SPEC_FILE, STOP_FILE
from trellis_contracts.evaluation import (
    RESULT_FILE,
    SAMPLES_FOLDER,
    BenchmarkTask,
    EngineSettings,
    EvaluationResult,
    EvaluationTask,
    Sample,
)
from trellis_contracts.events import Event
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import EXIT_STOPPED, EXIT_SUCCEEDED, NICENESS_VARIABLE, JobSpec, ModelSource
from trellis_evaluation.samples.store import open_store
from trellis_recipes.platform_defaults import environment as default_environment
from trellis_train.hooks.event_spool import Spool


@dataclass
class Evaluation:
    """An evaluation's folder and its attempts."""

    folder: Path
    model: Path
    benchmarks: list[BenchmarkTask]
    engine: EngineSettings = field(default_factory=EngineSettings)
    seed: int = 0

    @property
    def output(self) -> Path:
        return self.folder / "evaluation"

    @property
    def result(self) -> EvaluationResult:
        return EvaluationResult.model_validate_json((self.output / RESULT_FILE).read_bytes())

    def write_spec(self, attempt: int = 1) -> Path:
        """Write the spec of an attempt, as the platform does."""
        attempt_dir = self.folder / f"attempt-{attempt}"
        attempt_dir.mkdir(parents=True)
        spec = JobSpec(
            job_id=self.folder.name,
            attempt=attempt,
            name="evaluation",
            recipe="",
            engine=Engine.EVALUATE,
            platform="cpu",
            gpus=0,
            seed=self.seed,
            params={},
            engine_overrides=[],
            env=default_environment(Engine.EVALUATE, "cpu"),
            model=ModelSource(model_id="model", path=str(self.model)),
            attempt_dir=str(attempt_dir),
            checkpoint_dir=str(self.folder / "checkpoints"),
            evaluation=EvaluationTask(
                evaluation_id="ev_test",
                output_dir=str(self.output),
                benchmarks=self.benchmarks,
                engine=self.engine,
                seed=self.seed,
            ),
            ingest_url="http://127.0.0.1:9",
        )
        path = attempt_dir / SPEC_FILE
        path.write_text(spec.model_dump_json())
        return path

    def lines(self, label: str) -> list[Sample]:
        """Read the samples of an unfinished benchmark."""
        path = self.output / SAMPLES_FOLDER / f"{label}.jsonl"
        return [Sample.model_validate_json(line) for line in path.read_bytes().splitlines()]

    def samples(self, label: str) -> list[Sample]:
        """Read the samples of a finished benchmark, in the order in which problems were drawn."""
        with open_store(self.output / SAMPLES_FOLDER / f"{label}.sqlite") as store:
            return list(store.samples())

    def events(self, kind: str, attempt: int = 1) -> list[dict[str, Any]]:
        """Read the events that an attempt has reported to the platform."""
        files = sorted((self.folder / f"attempt-{attempt}" / EVENTS_FOLDER).glob("*.jsonl"))
        events = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
        return [event for event in events if event["kind"] == kind]


@dataclass
class Attempt:
    """One attempt of a plan."""

    spec: Path
    #: After how many samples it is asked to stop; None: never.
    stop_at: int | None = None
    #: A file of samples whose last line is torn before the attempt begins.
    torn: Path | None = None


class StoppingSpool(Spool):
    """Asks its own attempt to stop when so many samples are done."""

    def __init__(self, attempt_dir: str, stop_at: int | None) -> None:
        super().__init__(attempt_dir, "evaluator")
        self._stop_file, self._stop_at = Path(attempt_dir) / STOP_FILE, stop_at

    def write(self, event: Event) -> None:
        super().write(event)
        step = getattr(event, "step", 0)
        if self._stop_at is not None and step >= self._stop_at:
            self._stop_file.touch()


def run_all(plan: list[Attempt], log: Path, *, timeout_s: float = 560.0, **environment: str) -> list[int]:
    """Exit codes of attempts that share one engine; a failure of the process shows the end of its log."""
    file = log.with_suffix(".plan.json")
    file.write_text(json.dumps([asdict(attempt) for attempt in plan], default=str))
    with log.open("wb") as errors:
        done = subprocess.run(
            [sys.executable, "-m", "trellis_testing.evaluation_runs", str(file)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=timeout_s,
            check=False,
        )
    assert done.returncode == 0, log.read_text(errors="replace")[-5000:]
    return list(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> None:
    """Run the process with the engine."""
    plan = json.loads(Path(arguments[0]).read_text())
    specs = [JobSpec.model_validate_json(Path(each["spec"]).read_text()) for each in plan]
    from trellis_train.engines.evaluate import prepare_process

    prepare_process(specs[0].model_copy(update={"env": {**specs[0].env, NICENESS_VARIABLE: "0"}}))
    from trellis_train.evaluate import reporting, run
    from trellis_train.hooks.stop import StoppedByRequest

    # Every sample is told at once, and every step asks whether to stop.
    reporting.INTERVAL_S = run.STOP_POLL_S = 0.0
    engine: Any = None

    def start(*details: Any, **more: Any) -> Any:
        nonlocal engine
        if engine is None:
            engine = run.Inference(*details, **more)
            engine.end, engine.close = engine.close, engine.abort
        return engine

    codes = []
    for each, spec in zip(plan, specs, strict=True):
        assert spec.evaluation is not None
        if each["torn"] is not None:
            os.truncate(each["torn"], Path(each["torn"]).stat().st_size - 20)
        spool = StoppingSpool(spec.attempt_dir, each["stop_at"])
        try:
            run.EvaluationRun(spec, spec.evaluation, spool, start=start).run()
            codes.append(EXIT_SUCCEEDED)
        except StoppedByRequest:
            codes.append(EXIT_STOPPED)
    engine.end()
    print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
