"""lm-evaluation-harness with its own vLLM model, to be timed from outside.

``python -m trellis_train.comparison.lm_eval_vllm <settings.json>`` measures a model on prompts that are
given: what a person gets who calls ``simple_evaluate``. Prints one JSON object: :class:`Measured`.
"""

import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from trellis_train.compat import vllm_name
from trellis_train.platform.activation import is_cpu_platform

# Here and not below: vLLM's engine is a process of its own, which imports this module anew.
if is_cpu_platform():
    vllm_name.install()


class GivenTask(BaseModel):
    """Prompts of one benchmark, as another run has written them."""

    label: str
    #: JSON Lines with ``prompt`` and ``gold``, the right choice's letter or the answer.
    rows_path: str
    kind: Literal["generate", "choices"]
    stop: list[str] = []
    max_tokens: int = 1


class Settings(BaseModel):
    """What is measured."""

    model_path: str
    max_model_len: int
    tasks: list[GivenTask]
    #: Where what became of each prompt is written, one JSON object a line: :class:`MeasuredSample`.
    samples_path: str | None = None


class MeasuredSample(BaseModel):
    """What the harness found for one prompt."""

    label: str
    #: Place of the prompt in its file, from 0.
    position: int
    #: What was generated; empty for a choice.
    output: str
    #: The value of the task's metric: 1 where the answer is right.
    score: float


class Measured(BaseModel):
    """By task: its metric, and how many prompts there were."""

    scores: dict[str, float]
    prompts: dict[str, int]


def main(arguments: list[str]) -> int:
    """Measure, and print what was found."""
    settings = Settings.model_validate_json(Path(arguments[0]).read_text())
    print(measure(settings).model_dump_json(), flush=True)
    return 0


def measure(settings: Settings) -> Measured:
    """Run all tasks through ``simple_evaluate``."""
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.models.vllm_causallms import VLLM
    from lm_eval.tasks import TaskManager

    model = VLLM(
        pretrained=settings.model_path,
        dtype="float32",
        max_model_len=settings.max_model_len,
        batch_size="auto",
        seed=0,
        enforce_eager=True,
    )
    found: dict[str, Any] | None = simple_evaluate(
        model=model,
        tasks=[describe_task(task) for task in settings.tasks],
        # Without its thousands of other tasks, which take seconds to find.
        task_manager=TaskManager(include_defaults=False),
    )
    if found is None:
        raise RuntimeError("the harness gave no result")
    if settings.samples_path is not None:
        lines = [each.model_dump_json() for task in settings.tasks for each in read_samples(task, found)]
        Path(settings.samples_path).write_text("\n".join(lines), encoding="utf-8")
    scores = {}
    for task in settings.tasks:
        values = found["results"][task.label]
        scores[task.label] = values["exact_match,strict" if task.kind == "generate" else "acc,none"]
    prompts = {label: len(rows) for label, rows in found["samples"].items()}
    return Measured(scores=scores, prompts=prompts)


def read_samples(task: GivenTask, found: dict[str, Any]) -> list[MeasuredSample]:
    """Return the harness's samples of a task, in the order of its prompts."""
    metric = "exact_match" if task.kind == "generate" else "acc"
    samples = [
        MeasuredSample(
            label=task.label,
            position=each["doc_id"],
            output=each["resps"][0][0] if task.kind == "generate" else "",
            score=each[metric],
        )
        for each in found["samples"][task.label]
    ]
    return sorted(samples, key=lambda each: each.position)


def describe_task(task: GivenTask) -> dict[str, Any]:
    """Describe the task in the harness's own format."""
    common = {
        "task": task.label,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": task.rows_path}},
        "test_split": "test",
        "doc_to_text": "{{prompt}}",
        "num_fewshot": 0,
    }
    if task.kind == "choices":
        return {
            **common,
            "output_type": "multiple_choice",
            "doc_to_choice": ["A", "B", "C", "D"],
            "doc_to_target": "{{gold}}",
            "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        }
    return {
        **common,
        "output_type": "generate_until",
        "doc_to_target": "{{gold}}",
        "generation_kwargs": {"until": task.stop, "do_sample": False, "max_gen_toks": task.max_tokens},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        # GSM8K's strict match.
        "filter_list": [
            {
                "name": "strict",
                "filter": [
                    {"function": "regex", "regex_pattern": r"#### (\-?[0-9\.\,]+)"},
                    {"function": "take_first"},
                ],
            }
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
