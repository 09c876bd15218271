"""Whole evaluations of the starter model: twice the same, stopped and gone on, cut, refused."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.evaluation import (
    ANY_ORDER,
    SAMPLES_FOLDER,
    BenchmarkFiles,
    BenchmarkTask,
    Sample,
    Verdict,
)
from trellis_contracts.spec import EXIT_STOPPED, EXIT_SUCCEEDED
from trellis_testing.benchmark_sets import FOLDER, GSM8K, MATH500, MMLU, needs_sets
from trellis_testing.evaluation_runs import Attempt, Evaluation, run_all

HUMANEVAL = {"test": FOLDER / "humaneval/HumanEval.jsonl.gz"}
pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(600),
    needs_sets(GSM8K, MATH500, MMLU, HUMANEVAL),
]
TINY = {"max_tokens": 24}
#: A task of lm-evaluation-harness over rows in the form of GSM8K.
HARNESS_TASK = """
task: local_gsm8k
dataset_path: json
dataset_kwargs:
  data_files: {{"test": "{test}"}}
output_type: generate_until
test_split: test
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_target: "{{{{answer.split('####')[-1].strip()}}}}"
generation_kwargs: {{until: ["Question:"], do_sample: false, max_gen_toks: 16}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""
HARNESS_CHOICES = """
task: local_choices
dataset_path: json
dataset_kwargs:
  data_files: {{"test": "{test}"}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{question}}}}\\nAnswer:"
doc_to_choice: ["yes", "no", "perhaps not"]
doc_to_target: 0
"""


def order(label: str, parts: dict[str, Path], **fields: Any) -> BenchmarkTask:
    files = BenchmarkFiles(paths={part: [str(path)] for part, path in parts.items()}, sha256="0" * 64)
    return BenchmarkTask(label=label, order=ANY_ORDER.validate_python(fields), files=files if parts else None)


def gsm8k(limit: int, **fields: Any) -> BenchmarkTask:
    return order("gsm8k", GSM8K, benchmark="gsm8k", limit=limit, **{"decoding": TINY, **fields})


@dataclass
class Runs:
    """What all attempts of this file have left."""

    codes: dict[str, int]
    first: Evaluation
    again: Evaluation
    stopped: Evaluation
    whole: Evaluation
    changed: Evaluation
    harness: Evaluation


def all_four() -> list[BenchmarkTask]:
    return [
        gsm8k(6),
        order("math500", MATH500, benchmark="math500", limit=4, decoding=TINY),
        order("mmlu", MMLU, benchmark="mmlu", limit=8),
        order("plain", MMLU, benchmark="mmlu", limit=8, chat="never"),
        order(
            "humaneval",
            HUMANEVAL,
            benchmark="humaneval",
            limit=2,
            samples=2,
            k=[1, 2],
            decoding={"temperature": 0.8, **TINY},
        ),
    ]


def too_long(folder: Path) -> BenchmarkTask:
    """A problem that fits the context of 4,096 bytes, and one that does not."""
    path = folder / "rows.jsonl"
    questions = ["How much is 1 + 1?", "How much is this? " + "1 + " * 1100 + "1"]
    rows = [{"question": question, "answer": "#### 2"} for question in questions]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return order("long", {"test": path}, benchmark="gsm8k", decoding=TINY)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, starter_folder: Path) -> Runs:
    folder = tmp_path_factory.mktemp("evaluations")
    sampled = [gsm8k(12, decoding={"temperature": 1.0, **TINY})]

    def evaluate(name: str, benchmarks: list[BenchmarkTask]) -> Evaluation:
        return Evaluation(folder / name, starter_folder, benchmarks)

    first = evaluate("first", [*all_four(), too_long(folder)])
    again = evaluate("again", first.benchmarks)
    stopped, whole = evaluate("stopped", sampled), evaluate("whole", sampled)
    changed = evaluate("changed", [gsm8k(3)])
    other_order = evaluate("changed", [gsm8k(3, decoding={"max_tokens": 8})])
    harness = evaluate("harness", write_harness_tasks(folder))
    lines = stopped.output / SAMPLES_FOLDER / "gsm8k.jsonl"
    plan = {
        "first": Attempt(first.write_spec()),
        "again": Attempt(again.write_spec()),
        "stopped": Attempt(stopped.write_spec(), stop_at=2),
        "gone on": Attempt(stopped.write_spec(2), torn=lines),
        "changed": Attempt(changed.write_spec(), stop_at=1),
        "changed order": Attempt(other_order.write_spec(2)),
        "harness stopped": Attempt(harness.write_spec(), stop_at=1),
        "harness gone on": Attempt(harness.write_spec(2)),
        "whole": Attempt(whole.write_spec()),
    }
    codes = run_all(list(plan.values()), folder / "log", TRELLIS_HARNESS_TASKS=str(folder / "tasks"))
    named = dict(zip(plan, codes, strict=True))
    return Runs(named, first, again, stopped, whole, other_order, harness)


def write_harness_tasks(folder: Path) -> list[BenchmarkTask]:
    (folder / "tasks").mkdir()
    for name, text in (("local_gsm8k", HARNESS_TASK), ("local_choices", HARNESS_CHOICES)):
        (folder / "tasks" / f"{name}.yaml").write_text(text.format(test=GSM8K["test"]))
    return [
        order("local", {}, benchmark="harness", task="local_gsm8k", limit=5, chat="never"),
        order("choices", {}, benchmark="harness", task="local_choices", limit=5),
    ]


def bare(samples: list[Sample]) -> list[dict[str, Any]]:
    """Samples without the time that they took."""
    return [sample.model_dump(exclude={"seconds"}) for sample in samples]


def test_every_attempt_ends_as_it_was_asked_to(runs: Runs) -> None:
    stopped = {name for name, code in runs.codes.items() if code == EXIT_STOPPED}

    assert stopped == {"stopped", "changed", "harness stopped"}
    assert set(runs.codes.values()) == {EXIT_STOPPED, EXIT_SUCCEEDED}


def test_the_same_configuration_twice_gives_the_same_samples_and_scores(runs: Runs) -> None:
    labels = [task.label for task in runs.first.benchmarks]

    results = [evaluation.result.benchmarks for evaluation in (runs.first, runs.again)]

    assert [each.label for each in results[0]] == labels
    assert [each.scores for each in results[0]] == [each.scores for each in results[1]]
    for label in labels:
        assert bare(runs.first.samples(label)) == bare(runs.again.samples(label))


def test_every_benchmark_has_a_sample_for_each_generation(runs: Runs) -> None:
    found = {each.label: each for each in runs.first.result.benchmarks}

    counts = {label: (each.problems, each.counts.total) for label, each in found.items()}

    assert counts == {
        "gsm8k": (6, 6), "math500": (4, 4), "mmlu": (8, 8), "plain": (8, 8), "humaneval": (2, 4),
        "long": (2, 2),
    }  # fmt: skip
    assert [score.metric for score in found["humaneval"].scores] == ["pass@1", "pass@2"]
    assert [score.metric for score in found["gsm8k"].scores] == ["strict", "flexible"]
    assert {group.kind for group in found["math500"].groups} == {"level", "type"}


def test_prompts_are_kept_as_the_model_read_them(runs: Runs) -> None:
    [chat, *_], [plain, *_] = runs.first.samples("mmlu"), runs.first.samples("plain")

    assert chat.prompt.startswith("<|im_start|>")
    assert chat.prompt.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert "<|im_start|>" not in plain.prompt
    assert plain.prompt.endswith("Answer:")
    # One token a byte.
    assert plain.prompt_tokens == len(plain.prompt.encode())


def test_an_answer_that_reached_its_last_token_is_not_counted_as_wrong(runs: Runs) -> None:
    samples = runs.first.samples("gsm8k")

    assert {sample.verdict for sample in samples} == {Verdict.TRUNCATED}
    assert {(sample.finish_reason, sample.output_tokens) for sample in samples} == {("length", 24)}


def test_a_prompt_that_is_longer_than_the_context_fails_and_is_not_cut(runs: Runs) -> None:
    by_length = sorted(runs.first.samples("long"), key=lambda sample: sample.prompt_tokens)

    short, long = by_length

    assert short.verdict is Verdict.TRUNCATED
    assert long.verdict is Verdict.FAILED
    assert long.prompt.count("1 + ") > 1000
    assert f"{long.prompt_tokens} tokens, which leaves no room for an answer in the context of 4096" in str(
        long.error
    )
    assert runs.first.result.benchmarks[-1].counts.failed == 1


def test_a_stopped_evaluation_goes_on_behind_what_it_has(runs: Runs) -> None:
    """Its last line was torn besides, as by a process that died in the middle of it."""
    [resumed, *_] = runs.stopped.events("progress", attempt=2)[1:]

    assert 0 < resumed["step"] < 12
    # Sampled at temperature 1: each generation has a seed of its own, whatever runs beside it.
    assert bare(runs.stopped.samples("gsm8k")) == bare(runs.whole.samples("gsm8k"))
    assert runs.stopped.result.benchmarks[0].scores == runs.whole.result.benchmarks[0].scores


def test_samples_of_another_order_are_not_taken_up(runs: Runs) -> None:
    samples = runs.changed.samples("gsm8k")

    assert {sample.output_tokens for sample in samples} == {8}
    assert len(samples) == 3


def test_nothing_but_the_results_is_left_in_the_folder(runs: Runs) -> None:
    left = {path.name for path in (runs.stopped.output / SAMPLES_FOLDER).iterdir()}

    assert left == {"gsm8k.sqlite", "gsm8k.json"}
    assert {path.name for path in runs.stopped.output.iterdir()} == {SAMPLES_FOLDER, "result.json"}


def test_the_platform_hears_of_progress_and_partial_scores(runs: Runs) -> None:
    progress, metrics = runs.first.events("progress"), runs.first.events("metrics")

    last = progress[-1]

    assert (last["phase"], last["step"], last["total_steps"]) == ("finished", 32, 32)
    assert [event["step"] for event in progress] == sorted(event["step"] for event in progress)
    keys = {key for event in metrics for key in event["values"]}
    assert {"gsm8k/strict", "gsm8k/flexible", "mmlu/accuracy", "humaneval/pass@2"} <= keys


def test_the_manifest_says_what_the_scores_were_measured_with(runs: Runs) -> None:
    manifest, again = runs.first.result.manifest, runs.again.result.manifest

    assert manifest["engine"]["name"] == "vllm"
    assert (manifest["engine"]["dtype"], manifest["engine"]["max_model_len"]) == ("float32", 4096)
    assert manifest["seed"] == 0
    template = manifest["chat_template"]
    assert hashlib.sha256(template["text"].encode()).hexdigest() == template["sha256"]
    assert manifest["hardware"]["platform"] == "cpu"
    for label, each in manifest["benchmarks"].items():
        assert each["prompts_sha256"] == again["benchmarks"][label]["prompts_sha256"]
        assert each["data_sha256"] == "0" * 64
    assert manifest["benchmarks"]["mmlu"]["chat_template"] is True
    assert manifest["benchmarks"]["plain"]["chat_template"] is False


def test_a_task_of_the_harness_becomes_samples_and_scores(runs: Runs) -> None:
    generated, chosen = runs.harness.result.benchmarks

    samples = runs.harness.samples("local")

    assert (generated.headline, generated.problems, generated.counts.truncated) == ("exact_match", 5, 5)
    assert [score.metric for score in chosen.scores] == ["acc", "acc_norm"]
    assert chosen.scores[0].n == 5
    assert samples[0].prompt.startswith("Question: ")
    assert samples[0].gold.strip().replace(",", "").lstrip("-").isdigit()
    assert {sample.output_tokens for sample in samples} == {16}
    assert runs.harness.samples("choices")[0].output.startswith("yes: -")


def test_a_task_of_the_harness_does_not_ask_again_what_was_answered(runs: Runs) -> None:
    steps = [event["step"] for event in runs.harness.events("progress", attempt=2)]

    assert steps[-1] == 10
    assert not (runs.harness.output / SAMPLES_FOLDER / "local.answers").exists()
