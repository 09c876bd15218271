"""A whole evaluation: benchmarks read, one engine for all of them, samples scored beside it, the result."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trellis_contracts.evaluation import (
    RESULT_FILE,
    BenchmarkResult,
    EvaluationResult,
    EvaluationTask,
    HarnessOrder,
)
from trellis_contracts.spec import JobSpec
from trellis_data.atomic_files import write_atomically

from trellis_train.evaluate.harness.measuring import HarnessMeasurement
from trellis_train.evaluate.inference import Generation, Inference, RequestRefused
from trellis_train.evaluate.likelihoods import Likelihood
from trellis_train.evaluate.manifest import describe_evaluation, identify_run
from trellis_train.evaluate.measuring import Measurement
from trellis_train.evaluate.reporting import Reporter
from trellis_train.evaluate.weights import provide_weights
from trellis_train.hooks.event_spool import Spool, is_stop_requested
from trellis_train.hooks.stop import StoppedByRequest

#: Between two looks for a request to stop.
STOP_POLL_S = 0.5
#: While nothing is left but answers that are being scored.
_SCORING_POLL_S = 0.2

StartEngine = Callable[..., Inference]
Asked = tuple[Measurement, str, Generation | Likelihood]


class EvaluationRun:
    """One attempt of an evaluation. ``StoppedByRequest`` where it was asked to leave."""

    def __init__(
        self, spec: JobSpec, task: EvaluationTask, spool: Spool, *, start: StartEngine = Inference
    ) -> None:
        self._spec, self._task, self._start = spec, task, start
        self._output = Path(task.output_dir)
        self._reporter = Reporter(spool)
        self._looked_at = 0.0
        self._measurements: list[Measurement] = []
        self._harness: list[HarnessMeasurement] = []
        self._engine: Inference | None = None
        self._engine_facts: dict[str, Any] = {}
        #: Whether the requests that the engine has are sampled.
        self._is_random = False

    def run(self) -> EvaluationResult:
        """Measure what is missing, and write the result."""
        self._reporter.enter("loading")
        self._output.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self._open_benchmarks(stack)
            folder = stack.enter_context(
                provide_weights(self._spec, self._task.checkpoint, self.leave_if_asked)
            )
            tokenizer = load_tokenizer(folder)
            self._prepare(tokenizer)
            self.leave_if_asked()
            try:
                if any(not each.is_measured for each in self._everything):
                    self._measure(folder, tokenizer)
            except StoppedByRequest:
                for each in self._everything:
                    each.leave()
                raise
            finally:
                self._close_engine()
            result = self._write_result(tokenizer)
        self._reporter.enter("finished")
        return result

    @property
    def _everything(self) -> list[Measurement | HarnessMeasurement]:
        return [*self._measurements, *self._harness]

    def leave_if_asked(self) -> None:
        """Raise ``StoppedByRequest`` where the platform wants the run to end; cheap to call often."""
        if time.monotonic() - self._looked_at < STOP_POLL_S:
            return
        self._looked_at = time.monotonic()
        if is_stop_requested(self._spec.attempt_dir):
            raise StoppedByRequest

    def _open_benchmarks(self, stack: ExitStack) -> None:
        """Open all benchmarks before any weight is read, so that one that cannot run is reported at once."""
        for task in self._task.benchmarks:
            if isinstance(task.order, HarnessOrder):
                harness = HarnessMeasurement(task, self._task, self._reporter, self.leave_if_asked)
                stack.callback(harness.close)
                self._harness.append(harness)
                continue
            measurement = Measurement(task, self._task.seed, self._reporter)
            stack.callback(measurement.close)
            self._measurements.append(measurement)
        for each in self._everything:
            each.load()
        self._reporter.total = sum(each.total for each in self._everything)

    def _prepare(self, tokenizer: Any) -> None:
        identity = identify_run(self._spec, self._task)
        for each in self._everything:
            each.prepare(tokenizer, self._output, identity)

    def _measure(self, folder: Path, tokenizer: Any) -> None:
        self._engine = self._start(
            folder, self._task.engine, platform=self._spec.platform, seed=self._task.seed
        )
        self._engine_facts = self._engine.describe()
        self._reporter.enter("validating")
        self._generate(self._engine)
        for harness in self._harness:
            if not harness.is_measured:
                harness.measure(self._engine, tokenizer)
        self._close_engine()
        self._score_the_rest()

    def _generate(self, engine: Inference) -> None:
        """Run the engine's loop. Its inputs depend on completed work, never on the clock."""
        waiting = self._list_requests()
        held: Asked | None = None
        while True:
            held = self._fill(engine, waiting, held)
            if engine.pending == 0 and held is None:
                return
            for answer in engine.step():
                self._find(answer.id).take(answer)
            for each in self._measurements:
                each.collect()
            self._finish_measured()
            self.leave_if_asked()

    def _fill(self, engine: Inference, waiting: Iterator[Asked], held: Asked | None) -> Asked | None:
        """Give the engine requests; the one that has to wait for those before it to end."""
        while engine.is_hungry:
            asked = held or next(waiting, None)
            held = None
            if asked is None:
                return None
            measurement, id_, request = asked
            # Among greedy requests vLLM's CPU sampler draws sampled ones without regard to their seeds.
            if engine.pending and measurement.is_random != self._is_random:
                return asked
            self._is_random = measurement.is_random
            try:
                engine.submit(id_, request)
            except RequestRefused as refusal:
                measurement.refuse(id_, str(refusal))
        return held

    def _list_requests(self) -> Iterator[Asked]:
        for measurement in self._measurements:
            for id_, request in measurement.requests():
                yield measurement, id_, request

    def _find(self, id_: str) -> Measurement:
        label = id_.partition(":")[0]
        return next(each for each in self._measurements if each.label == label)

    def _score_the_rest(self) -> None:
        """Collect answers that are still being scored; the engine is gone by now."""
        while unscored := [each for each in self._measurements if not each.is_measured]:
            unscored[0].collect(_SCORING_POLL_S)
            self._finish_measured()
            self.leave_if_asked()
        self._finish_measured()

    def _finish_measured(self) -> None:
        for each in self._measurements:
            if each.is_measured and each.result is None:
                each.finish()

    def _close_engine(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _write_result(self, tokenizer: Any) -> EvaluationResult:
        self._finish_measured()
        found: dict[str, BenchmarkResult] = {
            each.label: each.result for each in self._everything if each.result
        }
        benchmarks = {each.label: each.describe() for each in self._everything}
        template = getattr(tokenizer, "chat_template", None)
        result = EvaluationResult(
            evaluation_id=self._task.evaluation_id,
            # In the order in which they were ordered.
            benchmarks=[found[task.label] for task in self._task.benchmarks],
            manifest=describe_evaluation(self._spec, self._task, self._engine_facts, template, benchmarks),
        )
        write_atomically(self._output / RESULT_FILE, result.model_dump_json(indent=1))
        return result


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of the model's folder without downloads and without running the folder's code."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)
