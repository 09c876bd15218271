"""Evaluations of models that were never run: samples as a model of some skill would leave them."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import trellis_api.wiring  # noqa: F401 - jobs that end release what they read
from trellis_api.benchmarks import service as benchmarks
from trellis_api.benchmarks.installed import InstalledSource
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.evaluations import recording, repository, service
from trellis_api.evaluations.folder import result_path, samples_path
from trellis_api.jobs import repository as jobs
from trellis_api.jobs import service as job_service
from trellis_contracts.evaluation import EvaluationResult, Sample, Verdict
from trellis_contracts.states import JobState
from trellis_evaluation.samples.store import write_store
from trellis_evaluation.statistics import summarise

from trellis_testing.reporting_jobs import now

TYPES = ("Algebra", "Counting & Probability", "Geometry", "Number Theory", "Precalculus")
#: What becomes of a sample that is not right, and how often.
_MISSES = ((Verdict.WRONG, 0.7), (Verdict.TRUNCATED, 0.15), (Verdict.UNANSWERED, 0.1), (Verdict.FAILED, 0.05))
MANIFEST: dict[str, Any] = {
    "engine": {"name": "vllm", "version": "0.11.0", "dtype": "float32"},
    "seed": 0,
    "prompts_sha256": {"gsm8k": "5f2a", "math500": "90c1"},
    "data": {"gsm8k": {"revision": "e53f048"}, "math500": {"revision": "6e4ed1a"}},
}


#: Problems of the test split, by benchmark.
_ROWS = {"gsm8k": 1319, "math": 5000, "math500": 500, "mmlu": 14042}


def install_benchmark(database: Database, name: str, groups: Mapping[str, Mapping[str, int]]) -> None:
    """Record the files of a benchmark as the worker that downloads them does."""
    source = InstalledSource(
        name=name,
        origin="mirror",
        repo_id=f"test/{name}",
        revision=benchmarks.find_entry(name).revision,
        sha256="ab" * 32,
        files={"test": ["test.jsonl"]},
        rows={"test": _ROWS[name]},
        groups={kind: dict(sizes) for kind, sizes in groups.items()},
        size_bytes=1_234_567,
        installed_at=now(),
    )
    with database.write() as session:
        benchmarks.mark_ready(session, source=source)


def answer_problems(label: str, count: int, skill: float, *, seed: int) -> list[Sample]:
    """Generate a model's answers to sums; the same label always has the same problems."""
    problems, answers = random.Random(label), random.Random(f"{label}-{seed}")
    return [_answer(position, skill, problems, answers) for position in range(count)]


def _answer(position: int, skill: float, problems: random.Random, answers: random.Random) -> Sample:
    level, kind = problems.randint(1, 5), problems.choice(TYPES)
    first, second = problems.randint(10, 99), problems.randint(10, 99)
    gold = first + second
    is_right = answers.random() < skill * (1.25 - level / 8)
    verdicts, weights = zip(*_MISSES, strict=True)
    verdict = Verdict.CORRECT if is_right else answers.choices(verdicts, weights)[0]
    said = gold if is_right else gold + answers.choice([-10, -1, 1, 10])
    question = f"A gardener plants {first} tulips and then {second} more. How many tulips are there now?"
    steps = f"There are {first} tulips at first. Then {second} are added, so {first} + {second} = {said}."
    endings = {
        Verdict.CORRECT: f"{steps}\n#### {said}",
        Verdict.WRONG: f"{steps}\n#### {said}",
        Verdict.TRUNCATED: f"{steps[:60]}",
        Verdict.UNANSWERED: "I would rather count them in the garden.",
        Verdict.FAILED: "",
    }
    is_answered = verdict in (Verdict.CORRECT, Verdict.WRONG)
    score = float(is_right)
    return Sample(
        position=position,
        key=f"test-{position}",
        groups={"level": f"Level {level}", "type": kind},
        prompt=f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n",
        output=endings[verdict],
        extracted=str(said) if is_answered else None,
        gold=str(gold),
        verdict=verdict,
        score=score,
        parts={"strict": score, "flexible": score},
        finish_reason="length" if verdict is Verdict.TRUNCATED else "stop",
        prompt_tokens=40 + position % 7,
        output_tokens=20 + position % 11,
        seconds=0.25 + position % 5 / 10,
        error="The engine answered with HTTP 500." if verdict is Verdict.FAILED else None,
    )


def finish_evaluation(
    settings: Settings, database: Database, evaluation_id: str, samples: Mapping[str, Sequence[Sample]]
) -> EvaluationResult:
    """Finish an evaluation: write its files, store its scores, and let its job succeed."""
    with database.write() as session:
        row = repository.find_evaluation(session, evaluation_id=evaluation_id)
        assert row is not None
        orders = {str(order.label): order for order in service.read_request(row).benchmarks}
        job_id = row.job_id
    results = []
    for label, answers in samples.items():
        write_store(samples_path(settings, evaluation_id, label), answers)
        results.append(
            summarise(
                answers,
                label=label,
                benchmark=orders[label].benchmark,
                metrics=["strict", "flexible"],
                group_kinds=["level", "type"],
                seconds=sum(one.seconds for one in answers),
            )
        )
    result = EvaluationResult(evaluation_id=evaluation_id, benchmarks=results, manifest=MANIFEST)
    result_path(settings, evaluation_id).write_text(result.model_dump_json())
    with database.write() as session:
        job_service.claim_for_launch(session, job_id=job_id)
        job = jobs.find_job(session, job_id=job_id)
        assert job is not None
        job_service.settle(session, job_id=job_id, attempt=job.attempt, state=JobState.SUCCEEDED)
        recording.record_result(session, job=job, result=result)
    return result
