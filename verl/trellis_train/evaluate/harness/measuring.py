"""One task of lm-evaluation-harness, or one of its groups, as a benchmark of a run."""

import hashlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from trellis_contracts.evaluation import (
    SAMPLES_FOLDER,
    BenchmarkResult,
    BenchmarkTask,
    EvaluationTask,
    GroupScore,
    HarnessOrder,
    Sample,
    Score,
    Verdict,
)
from trellis_evaluation.statistics.summary import count_verdicts

from trellis_train.evaluate.benchmark import BenchmarkUnusable
from trellis_train.evaluate.drawing import draw_places
from trellis_train.evaluate.harness.answers import AnswerLog
from trellis_train.evaluate.harness.harness_results import read_samples, read_scores
from trellis_train.evaluate.inference import Inference
from trellis_train.evaluate.manifest import fingerprint
from trellis_train.evaluate.rendering import choose_chat
from trellis_train.evaluate.reporting import Reporter
from trellis_train.evaluate.writing import SampleLog

#: Folder with tasks (YAML) beside those that come with the harness.
TASKS_VARIABLE = "TRELLIS_HARNESS_TASKS"
_HARNESS_SEED = 1234


class HarnessMeasurement:
    """Offers to a run what ``Measurement`` does, but the harness itself asks the engine."""

    def __init__(
        self,
        task: BenchmarkTask,
        evaluation: EvaluationTask,
        reporter: Reporter,
        leave_if_asked: Callable[[], None],
    ) -> None:
        if not isinstance(task.order, HarnessOrder):
            raise TypeError(f"{task.label} is no task of lm-evaluation-harness")
        self.label = task.label
        self._task, self._order, self._seed = task, task.order, evaluation.seed
        self._reporter = reporter
        self._leave_if_asked = leave_if_asked
        self._started: float | None = None
        self._prompts_sha256 = ""

    def load(self) -> None:
        """Find the task and its data; ``BenchmarkUnusable`` where either is not there."""
        self._loaded = load_task(self._order.task)
        self._draws = {}
        for name, task in self._loaded["tasks"].items():
            count = len(task.eval_docs)
            self._draws[name] = sorted(draw_places(count, self._order.limit, self._seed))
        self.total = sum(len(places) for places in self._draws.values())
        if self.total == 0:
            raise BenchmarkUnusable(f"{self.label}: the task '{self._order.task}' has no documents")

    def prepare(self, tokenizer: Any, output_dir: Path, identity: dict[str, Any]) -> None:
        """Take up what earlier attempts have left."""
        import lm_eval

        self._has_chat = choose_chat(tokenizer, self._order)
        known = fingerprint(self._task, self._seed, {**identity, "harness": lm_eval.__version__}, "")
        self._log = SampleLog(output_dir, self.label, known)
        self._log.open(lambda _: None)
        self._answers = AnswerLog(output_dir / SAMPLES_FOLDER / f"{self.label}.answers")
        if self._log.is_done:
            self._reporter.done += self.total

    @property
    def is_measured(self) -> bool:
        """Whether the result is there."""
        return self._log.is_done

    @property
    def result(self) -> BenchmarkResult | None:
        """There when the task is done."""
        return self._log.state.result if self._log.is_done else None

    def measure(self, engine: Inference, tokenizer: Any) -> None:
        """Let the harness run the task on the engine."""
        from trellis_train.evaluate.harness.model import HarnessModel

        self._started = time.monotonic()
        self._done_before = self._reporter.done
        self._answers.open(self._log.state.fingerprint)
        model = HarnessModel(
            engine,
            tokenizer,
            decoding=self._order.decoding,
            has_chat=self._has_chat,
            seed=self._seed,
            log=self._answers,
            on_step=self._advance,
        )
        found = self._evaluate(model)
        samples = read_samples(found, model)
        self._prompts_sha256 = hashlib.sha256("".join(each.prompt for each in samples).encode()).hexdigest()
        result = self._summarise(found, samples, model.cut)
        self._log.finish(samples, result)
        self._answers.remove()
        self._reporter.done = self._done_before + self.total
        self._reporter.settle(self.label, {score.metric: score.value for score in result.scores})

    def describe(self) -> dict[str, Any]:
        """Describe the task for the manifest."""
        import lm_eval

        return {
            "order": self._order.model_dump(mode="json"),
            "problems": self.total,
            "prompts_sha256": self._prompts_sha256,
            "chat_template": self._has_chat,
            "harness": lm_eval.__version__,
            "limit_is_of": "each task of a group",
            "tasks": {
                name: {
                    "version": task.VERSION,
                    "dataset": task.DATASET_PATH,
                    "dataset_name": task.DATASET_NAME,
                    "output_type": task.OUTPUT_TYPE,
                    "shots": task.get_config("num_fewshot"),
                }
                for name, task in self._loaded["tasks"].items()
            },
        }

    def leave(self) -> None:
        """Keep the engine's answers; the next attempt asks for the others."""
        self._answers.close()
        self._log.close(self._spent())

    def close(self) -> None:
        """Do nothing: nothing was started."""

    def _evaluate(self, model: Any) -> dict[str, Any]:
        from lm_eval.evaluator import evaluate

        for task in self._loaded["tasks"].values():
            prepare_task(task, self._order.shots)
        # What `simple_evaluate` does without its look at the machine, which takes seconds.
        found: dict[str, Any] | None = evaluate(
            lm=model,
            task_dict=self._loaded,
            samples=self._draws,
            apply_chat_template=self._has_chat,
            fewshot_as_multiturn=self._has_chat,
            system_instruction=self._order.system if self._has_chat else None,
            log_samples=True,
        )
        if found is None:
            raise RuntimeError("the harness gave no result")
        return found

    def _advance(self, part: float) -> None:
        """Report after an engine step which share of the harness's requests is answered."""
        self._reporter.advance(self._done_before + int(part * self.total))
        self._leave_if_asked()

    def _summarise(self, found: dict[str, Any], samples: list[Sample], cut: set[str]) -> BenchmarkResult:
        scores = read_scores(found, self._order.task)
        names = list(self._loaded["tasks"])
        groups = []
        if len(names) > 1:
            parts: dict[str, list[Score]] = {name: read_scores(found, name) for name in names}
            groups = [
                GroupScore(kind="task", name=name, score=each[0]) for name, each in parts.items() if each
            ]
            scores = scores or [_mean_of(parts)]
        remarks: dict[str, float | str] = {"cut_prompts": float(len(cut))} if cut else {}
        return BenchmarkResult(
            label=self.label,
            benchmark="harness",
            headline=scores[0].metric,
            scores=scores,
            groups=groups,
            counts=count_verdicts(Counter(Verdict(each.verdict) for each in samples)),
            problems=self.total,
            prompt_tokens=sum(each.prompt_tokens for each in samples),
            output_tokens=sum(each.output_tokens for each in samples),
            seconds=self._spent(),
            remarks=remarks,
        )

    def _spent(self) -> float:
        now = time.monotonic()
        return round(self._log.state.seconds + (now - self._started if self._started else 0.0), 3)


def load_task(name: str) -> Any:
    """Load the harness's ``TaskDict`` of a task, group or tag; ``BenchmarkUnusable`` if it cannot be run."""
    manager = _index_tasks(os.environ.get(TASKS_VARIABLE) or None)
    if name not in manager.all_tasks:
        raise BenchmarkUnusable(f"lm-evaluation-harness has no task '{name}'")
    from huggingface_hub import constants
    from trellis_data.guarded_clients import guard_hub

    guard_hub(constants.ENDPOINT)
    try:
        loaded = manager.load([name])
    except Exception as error:  # the edge to the loaders of hundreds of tasks
        raise BenchmarkUnusable(
            f"the data of lm-evaluation-harness's task '{name}' could not be loaded "
            f"({type(error).__name__}: {error}); without access to the Hugging Face Hub, put its data in the "
            "Hub cache first"
        ) from error
    unsafe = [each for each, task in loaded["tasks"].items() if getattr(task, "UNSAFE_CODE", False)]
    if unsafe:
        raise BenchmarkUnusable(
            f"lm-evaluation-harness's task '{unsafe[0]}' runs the model's code without a sandbox"
        )
    return loaded


@cache
def _index_tasks(folder: str | None) -> Any:
    """Index the harness's tasks once, because that reads thousands of files."""
    from lm_eval.tasks import TaskManager

    return TaskManager(include_path=folder)


def prepare_task(task: Any, shots: int | None) -> None:
    """Set seeds and examples as ``lm_eval.evaluator.simple_evaluate`` does by default."""
    random.seed(0)
    np.random.seed(_HARNESS_SEED)
    configured = task.get_config("num_fewshot")
    # A task that is configured to have none stays without.
    if shots is not None and configured != 0:
        task.set_config(key="num_fewshot", value=shots)
    elif configured is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=_HARNESS_SEED)


def _mean_of(parts: dict[str, list[Score]]) -> Score:
    """Average the first metrics of a tag's tasks, for which the harness gives no common score."""
    first = [scores[0] for scores in parts.values() if scores]
    return Score(
        metric="mean",
        value=sum(score.value for score in first) / len(first),
        n=sum(score.n for score in first),
    )
